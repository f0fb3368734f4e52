// Step 1: what the steps that end need, into shared memory.

__device__ void fetch_geometry(const Shared& shared, unsigned first,
                               const REAL* geometry)
{
    constexpr int NUMBERS = ELEMENTS * GEOMETRY;
    for (unsigned i = threadIdx.x; i < NUMBERS; i += THREADS)
        shared.shape[i] = geometry[(size_t)first * GEOMETRY + i];
}

// Integrals of the block's elements, and links to those of neighbors,
// which count regions, too. Elements beyond the last have zeros, and
// links to element 0.
__device__ void fetch(const Shared& shared, unsigned first,
                      unsigned count, unsigned tick, unsigned region,
                      const REAL* integrals, const unsigned* now,
                      const unsigned* later, const unsigned* groups)
{
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < VECTORS; i += THREADS) {
        const unsigned e = i / CHUNK, k = first + e;
        if (k < count) {
            const unsigned bits = tick >> groups[k * WORDS + CLUSTER];
            const size_t from = (size_t)((bits & 1) * region + k);
            copy(spread(shared.state, i),
                 (const VECTOR*)integrals + from * CHUNK + i % CHUNK);
        } else
            *spread(shared.state, i) = VECTOR();
    }
    for (unsigned i = threadIdx.x; i < ELEMENTS * 4; i += THREADS) {
        const unsigned k = first + i / 4;
        unsigned link = 0;
        if (k < count) {
            const unsigned bits = tick >> groups[k * WORDS + CLUSTER];
            link = (bits & 2 ? later : now)[first * 4 + i];
            if (link % 32 < 24)   // no boundary
                link += (bits & 1) * region * 32;
        }
        shared.link[i] = link;
    }
    wait_for_copies();
}
