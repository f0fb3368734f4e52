// Step 1: load the block's states, geometry and links into shared
// memory.

// Iterations of a loop in which all threads share n items.
__device__ constexpr int rounds(int n)
{
    return (n + THREADS - 1) / THREADS;
}

__device__ void fetch(const Shared& shared, unsigned first,
                      const REAL* u, const unsigned* links,
                      const REAL* geometry, const REAL* res, REAL a)
{
    // The states, which are contiguous, and the geometry.
    constexpr int VECTORS = ELEMENTS * SIZE;
    const VECTOR* states = (const VECTOR*)u + (size_t)first * SIZE;
#pragma unroll 4
    for (unsigned k = 0, i = threadIdx.x; k < rounds(VECTORS);
         ++k, i += THREADS)
        if (i < VECTORS)
            copy(shared.state + i / SIZE * STATE
                     + i / NP % WORDS * COLUMNS + i % NP,
                 states + i);
    constexpr int NUMBERS = ELEMENTS * DESCRIBED;
#pragma unroll
    for (unsigned k = 0, i = threadIdx.x; k < rounds(NUMBERS);
         ++k, i += THREADS)
        if (i < NUMBERS)
            copy((VECTOR*)shared.shape + i,
                 (const VECTOR*)geometry + (first * DESCRIBED + i));

    // The links; and zeros, since products read the padding, too.
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < ELEMENTS; i += THREADS) {
        copy((VECTOR*)shared.link + i,
             (const VECTOR*)links + (first + i));
        for (unsigned n = NP; n < COLUMNS; ++n)
            for (unsigned k = 0; k < WORDS; ++k)
                shared.state[i * STATE + k * COLUMNS + n] = VECTOR();
        for (unsigned n = NFP; n < FACE; ++n)
            for (unsigned f = 0; f < 4; ++f)
                ((REAL*)(shared.flux + i * FLUX))[f * FACE + n] = 0;
    }

    // Prefetch res, which the update reads unless a = 0; a cache line
    // holds 8 VECTORs.
    const VECTOR* kept = (const VECTOR*)res + (size_t)first * SIZE;
#pragma unroll 1
    for (unsigned i = threadIdx.x * 8; a != 0 && i < VECTORS;
         i += THREADS * 8)
        announce(kept + i);
    wait_for_copies();
}
