// Steps 4 and 5, without tensor cores.

// Lift the flux face by face, by two columns of LIFT at a time.
__device__ void add_lifted(Rates& rates, const Place& place,
                           const Shared& shared, const REAL* lift)
{
    const REAL* values = (const REAL*)(shared.flux + place.row * FLUX);
    const COUPLE* entries = (const COUPLE*)lift + place.lane;
#pragma unroll
    for (int f = 0; f < 4; ++f) {
        REAL lifted[NODES][INLINE][2] = {};
#pragma unroll DEPTH
        for (int j = 0; j < FACE;
             j += 2, values += 4, entries += NODES * LANES) {
            COUPLE L[NODES];
#pragma unroll
            for (int i = 0; i < NODES; ++i)
                L[i] = entries[i * LANES];
#pragma unroll
            for (int e = 0; e < INLINE; ++e) {
                alignas(16) REAL v[4];
                read(v, values + e * POINTS * 2);
#pragma unroll
                for (int i = 0; i < NODES; ++i) {
                    lifted[i][e][0] += L[i].x * v[0] + L[i].y * v[2];
                    lifted[i][e][1] += L[i].x * v[1] + L[i].y * v[3];
                }
            }
        }
        // The sums of a face are components along its own tangents.
#pragma unroll
        for (int i = 0; i < NODES * INLINE; ++i) {
            const int e = i % INLINE;
            const REAL(&both)[2] = lifted[i / INLINE][e];
            const REAL* shape =
                shared.shape + (place.element + e) * GEOMETRY;
            add_face(rates[i / INLINE][e], f, shape + 6 + f * 3,
                     both[0], both[1]);
        }
    }
}

// Store du/dt at this thread's nodes in shared memory.
__device__ void store_rates(const Rates& rates, const Place& place,
                            const Shared& shared)
{
    REAL* to = (REAL*)(shared.rate + place.row * STATE);
#pragma unroll
    for (int i = 0; i < NODES * INLINE; ++i) {
        const unsigned e = i % INLINE;
        const unsigned n = place.lane + i / INLINE * LANES;
        if (place.counts() && n < NP)
            lower(to + e * SIZE + n * 6, rates[i / INLINE][e],
                  shared.shape + (place.element + e) * GEOMETRY);
    }
}
