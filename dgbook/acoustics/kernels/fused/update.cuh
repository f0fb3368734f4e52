// Step 5: res = a res + dt du/dt, new = u + b res, at the nodes whose
// rates a thread has; or, FACTORED, res = a res + b u + dt du/dt alone.

__device__ void update(const Rates& rates, const Place& place,
                       const Shared& shared, unsigned first, REAL* res,
                       REAL* newer, REAL a, REAL b, REAL dt)
{
    const unsigned begin = corner(place), e = place.element;
    const VECTOR* before = shared.state + e * STATE + begin;
    VECTOR* kept = (VECTOR*)res + (size_t)first * SIZE;
    VECTOR* next = (VECTOR*)newer + (size_t)first * SIZE;
    kept += e * SIZE + begin, next += e * SIZE + begin;
#pragma unroll
    for (int i = 0; i < NODES; ++i) {
        // All loads of res are in flight before the first is needed.
        // They are read only once: leave the cache to u.
        VECTOR r[SLOTS][WORDS];
#pragma unroll
        for (int k = 0; k < SLOTS; ++k) {
            const int n = i * STRIDE + k % SIDE * 4;
            const int at = k / SIDE * APART * SIZE + n;
#pragma unroll
            for (int j = 0; j < WORDS; ++j)
                if (a != 0 && begin + n < NP)
                    r[k][j] = __ldcs(kept + at + j * NP);
        }
#pragma unroll
        for (int k = 0; k < SLOTS; ++k) {
            const int n = i * STRIDE + k % SIDE * 4;
            const int at = k / SIDE * APART * SIZE + n;
            if (begin + n >= NP)
                continue;
            alignas(16) REAL rate[4], v[4];
            fields(v, before + k / SIDE * APART * STATE + n, COLUMNS);
            scale(rate, rates[i][k / SIDE][k % SIDE],
                  shared.shape + (e + k / SIDE * APART) * GEOMETRY);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                rate[j] *= dt;
                if (a != 0)
                    rate[j] += a * ((REAL*)r[k])[j];
                if (FACTORED)
                    rate[j] += b * v[j];
                else
                    v[j] += b * rate[j];
            }
#pragma unroll
            for (int j = 0; j < WORDS; ++j) {
                __stcs(kept + at + j * NP, ((VECTOR*)rate)[j]);
                if (!FACTORED && b != 0)
                    __stcs(next + at + j * NP, ((VECTOR*)v)[j]);
            }
        }
    }
}
