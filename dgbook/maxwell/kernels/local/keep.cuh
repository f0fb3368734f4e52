// Step 3: integrals at nodes, to where neighbors read them.

// From modes to nodes; integrals over first halves where neighbors have
// shorter steps.
__device__ void to_nodes(Fields& whole, Fields& half,
                         const Place& place, const Shared& shared,
                         const REAL* vandermonde, bool halved)
{
    put(shared.state, whole, place);
    put(shared.rate, half, place);
    pad<NP>(shared.state);
    pad<NP>(shared.rate);
    __syncthreads();
    const REAL* values = element(shared.state, place.row);
    const REAL* firsts = element(shared.rate, place.row);
    const COUPLE* entries = (const COUPLE*)vandermonde + place.lane;
#pragma unroll
    for (int i = 0; i < NODES * 6; ++i)
        whole[i / 6][i % 6] = half[i / 6][i % 6] = 0;
#pragma unroll DEPTH
    for (int m = 0; m < COLUMNS; m += 2, values += 12, firsts += 12,
             entries += NODES * LANES) {
        COUPLE V[NODES];
#pragma unroll
        for (int i = 0; i < NODES; ++i)
            V[i] = entries[i * LANES];
        alignas(16) REAL v[12];
        read(v, values);
#pragma unroll
        for (int i = 0; i < NODES * 6; ++i)
            whole[i / 6][i % 6] += V[i / 6].x * v[i % 6]
                                   + V[i / 6].y * v[6 + i % 6];
        if (halved) {
            read(v, firsts);
#pragma unroll
            for (int i = 0; i < NODES * 6; ++i)
                half[i / 6][i % 6] += V[i / 6].x * v[i % 6]
                                      + V[i / 6].y * v[6 + i % 6];
        }
    }
    __syncthreads();
    put(shared.state, whole, place);
    put(shared.rate, half, place);
    __syncthreads();
}

// Write the integrals of steps that begin with a tick.
__device__ void keep(const Shared& shared, unsigned first,
                     unsigned count, unsigned tick, unsigned region,
                     unsigned halves, const unsigned* groups,
                     REAL* integrals)
{
    VECTOR* even = (VECTOR*)integrals;
    VECTOR* odd = even + (size_t)region * CHUNK;
    for (unsigned i = threadIdx.x; i < VECTORS; i += THREADS) {
        const unsigned k = first + i / CHUNK, j = i % CHUNK;
        if (k >= count)
            break;
        const unsigned* group = groups + k * WORDS;
        const unsigned bits = tick >> group[CLUSTER];
        const VECTOR whole = *spread(shared.state, i);
        (bits & 1 ? odd : even)[(size_t)k * CHUNK + j] = whole;
        if (group[LONGER] != NOWHERE) {   // the sum of two steps
            VECTOR* to = (bits & 2 ? odd : even)
                         + (size_t)group[LONGER] * CHUNK + j;
            alignas(16) REAL sum[WIDTH], before[WIDTH];
            read(sum, &whole);
            if (bits & 1) {
                read(before, to);
#pragma unroll
                for (int x = 0; x < WIDTH; ++x)
                    sum[x] += before[x];
            }
            *to = *(VECTOR*)sum;
        }
        if (group[SHORTER] != NOWHERE) {   // one half after the other
            const size_t to = (size_t)(group[SHORTER]
                                       + (bits & 1) * halves) * CHUNK;
            const VECTOR* half = spread(shared.rate, i);
            alignas(16) REAL rest[WIDTH], part[WIDTH];
            read(rest, &whole);
            read(part, half);
#pragma unroll
            for (int x = 0; x < WIDTH; ++x)
                rest[x] -= part[x];
            even[to + j] = *half;
            odd[to + j] = *(VECTOR*)rest;
        }
    }
}
