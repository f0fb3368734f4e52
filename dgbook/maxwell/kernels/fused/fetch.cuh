// Step 1: load the block's states, links and geometry into shared
// memory.

__device__ void fetch(const Shared& shared, unsigned first,
                      const REAL* u, const unsigned* links,
                      const REAL* geometry, const REAL* res, REAL a)
{
    // The states, bypassing the registers where the device can do so.
    const size_t start = (size_t)first * (SIZE / WIDTH);
    const VECTOR* states = (const VECTOR*)u + start;
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < VECTORS; i += THREADS)
        copy(spread(shared.state, i), states + i);

    // Prefetch res, which the update reads unless a = 0; a cache line
    // holds 8 VECTORs.
    const VECTOR* kept = (const VECTOR*)res + start;
    for (unsigned i = threadIdx.x * 8; a != 0 && i < VECTORS;
         i += THREADS * 8)
        announce(kept + i);

    // Products read the gaps between groups, too: these must be zero.
    constexpr unsigned REST = STATE > CHUNK ? STATE - CHUNK : 1;
    constexpr unsigned GAPS = GROUPS * REST;
    if constexpr (STATE > CHUNK)
        for (unsigned i = threadIdx.x; i < GAPS; i += THREADS) {
            const unsigned gap = i / REST * STATE + CHUNK;
            shared.state[gap + i % REST] = VECTOR();
        }

    // Links and geometry.
    for (unsigned i = threadIdx.x; i < ELEMENTS * 4; i += THREADS)
        shared.link[i] = links[first * 4 + i];
    constexpr int NUMBERS = ELEMENTS * GEOMETRY;
    for (unsigned i = threadIdx.x; i < NUMBERS; i += THREADS)
        shared.shape[i] = geometry[(size_t)first * GEOMETRY + i];
    wait_for_copies();
}
