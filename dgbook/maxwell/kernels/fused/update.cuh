// Step 6: res = a res + dt du/dt, new = u + b res, in contiguous
// memory; or, FACTORED, res = a res + b u + dt du/dt alone.

__device__ void update(const Shared& shared, unsigned first,
                       const REAL* u, REAL* res, REAL* newer, REAL a,
                       REAL b, REAL dt)
{
    const size_t start = (size_t)first * (SIZE / WIDTH);
    const VECTOR* states = (const VECTOR*)u + start;
    VECTOR* kept = (VECTOR*)res + start;
    VECTOR* next = (VECTOR*)newer + start;
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < VECTORS; i += THREADS) {
        alignas(16) REAL r[WIDTH], rate[WIDTH], v[WIDTH];
        read(rate, spread(shared.rate, i));
        if (!FACTORED || b != 0)   // then u is added to res
            read(v, KEEP ? spread(shared.state, i) : states + i);
        if (a != 0)   // read only once: leave the cache to u
            *(VECTOR*)r = __ldcs(kept + i);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            r[j] = a != 0 ? a * r[j] + dt * rate[j] : dt * rate[j];
            if (!FACTORED)
                v[j] += b * r[j];
            else if (b != 0)
                r[j] += b * v[j];
        }
        __stcs(kept + i, *(VECTOR*)r);
        if (!FACTORED && b != 0)
            __stcs(next + i, *(VECTOR*)v);
    }
}
