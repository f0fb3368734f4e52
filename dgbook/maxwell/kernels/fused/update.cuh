// Step 6: res = a res + dt du/dt, new = u + b res, through contiguous memory.

__device__ void update(const Shared& shared, unsigned first, const REAL* u, REAL* res,
                       REAL* newer, REAL a, REAL b, REAL dt)
{
    const VECTOR* states = (const VECTOR*)u + (size_t)first * (SIZE / WIDTH);
    VECTOR* kept = (VECTOR*)res + (size_t)first * (SIZE / WIDTH);
    VECTOR* next = (VECTOR*)newer + (size_t)first * (SIZE / WIDTH);
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < ELEMENTS * SIZE / WIDTH; i += THREADS) {
        alignas(16) REAL r[WIDTH], rate[WIDTH], v[WIDTH];
        read(rate, spread(shared.rate, i));
        read(v, KEEP ? spread(shared.state, i) : states + i);
        if (a != 0)
            *(VECTOR*)r = __ldcs(kept + i);   // not wanted again: leave the cache to u
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            r[j] = a != 0 ? a * r[j] + dt * rate[j] : dt * rate[j];
            v[j] += b * r[j];
        }
        __stcs(kept + i, *(VECTOR*)r);
        if (b != 0)
            __stcs(next + i, *(VECTOR*)v);
    }
}
