// Step 1: what the block needs of its own elements comes to shared memory.

__device__ void fetch(const Shared& shared, unsigned first, const REAL* u, const unsigned* links,
                      const REAL* geometry, const REAL* res, REAL a)
{
    // The states, past the registers where the device can.
    const VECTOR* states = (const VECTOR*)u + (size_t)first * (SIZE / WIDTH);
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < ELEMENTS * SIZE / WIDTH; i += THREADS)
        copy(spread(shared.state, i), states + i);

    // The update will want res unless a = 0; a cache line holds 8 VECTORs.
    const VECTOR* kept = (const VECTOR*)res + (size_t)first * (SIZE / WIDTH);
    for (unsigned i = threadIdx.x * 8; a != 0 && i < ELEMENTS * SIZE / WIDTH; i += THREADS * 8)
        announce(kept + i);

    // Zero times D is zero: what lies between groups is read, too.
    constexpr unsigned REST = STATE > CHUNK ? STATE - CHUNK : 1;
    if constexpr (STATE > CHUNK)
        for (unsigned i = threadIdx.x; i < GROUPS * REST; i += THREADS)
            shared.state[i / REST * STATE + CHUNK + i % REST] = VECTOR();

    for (unsigned i = threadIdx.x; i < ELEMENTS * 4; i += THREADS)
        shared.link[i] = links[first * 4 + i];
    for (unsigned i = threadIdx.x; i < ELEMENTS * GEOMETRY; i += THREADS)
        shared.shape[i] = geometry[(size_t)first * GEOMETRY + i];
    wait_for_copies();
}
