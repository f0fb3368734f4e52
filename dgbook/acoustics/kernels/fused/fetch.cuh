// Step 1: what the block needs of its own elements comes to shared memory.

__device__ constexpr int turns(int n) { return (n + THREADS - 1) / THREADS; }

__device__ void fetch(const Shared& shared, unsigned first, const REAL* u, const unsigned* links,
                      const REAL* geometry, const REAL* res, REAL a)
{
    // The states, which are contiguous, and what describes the elements.
    const VECTOR* states = (const VECTOR*)u + (size_t)first * SIZE;
#pragma unroll 4
    for (unsigned k = 0, i = threadIdx.x; k < turns(ELEMENTS * SIZE); ++k, i += THREADS)
        if (i < ELEMENTS * SIZE)
            copy(shared.state + i / SIZE * STATE + i / NP % WORDS * COLUMNS + i % NP, states + i);
#pragma unroll
    for (unsigned k = 0, i = threadIdx.x; k < turns(ELEMENTS * DESCRIBED); ++k, i += THREADS)
        if (i < ELEMENTS * DESCRIBED)
            copy((VECTOR*)shared.shape + i, (const VECTOR*)geometry + (first * DESCRIBED + i));

    // Links; and zeros, for zero times D or LIFT is zero.
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < ELEMENTS; i += THREADS) {
        copy((VECTOR*)shared.link + i, (const VECTOR*)links + (first + i));
        for (unsigned n = NP; n < COLUMNS; ++n)
            for (unsigned k = 0; k < WORDS; ++k)
                shared.state[i * STATE + k * COLUMNS + n] = VECTOR();
        for (unsigned n = NFP; n < FACE; ++n)
            for (unsigned f = 0; f < 4; ++f)
                ((REAL*)(shared.flux + i * FLUX))[f * FACE + n] = 0;
    }

    // The update will want res unless a = 0; a cache line holds 8 VECTORs.
    const VECTOR* kept = (const VECTOR*)res + (size_t)first * SIZE;
#pragma unroll 1
    for (unsigned i = threadIdx.x * 8; a != 0 && i < ELEMENTS * SIZE; i += THREADS * 8)
        announce(kept + i);
    wait_for_copies();
}
