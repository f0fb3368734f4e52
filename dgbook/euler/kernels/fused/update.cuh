// Step 4: the update. The three kinds of stages write
//
// RATE    out = f(u)
// NEXT    out = base + dt f(u)
// LAST    out = base + ((one - base) + 2 (two - base) + (u - base)) / 3
//               + dt f(u)
enum { RATE, NEXT, LAST };

// Update the nodes from `start` on; `gas` says whether density and
// pressure are positive.
__device__ void update(REAL (&rate)[NODES][4], bool& gas,
                       const REAL* state, size_t first, int start,
                       const REAL* u, const REAL* base, const REAL* one,
                       const REAL* two, REAL* out, int stage, REAL dt)
{
    const size_t at = first + start * 4 * TILE;
    const REAL *old = base + at, *second = one + at, *third = two + at;
    const bool whole = ROWS == NP || start + NODES <= NP;
    const int values = 4 * (whole ? NODES : NP - start);
#pragma unroll
    for (int i = 0; i < 4 * NODES; ++i)
        rate[i / 4][i % 4] *= dt;

    // Add the earlier states.
    if (stage == NEXT && base == u) {
#pragma unroll
        for (int i = 0; i < 4 * NODES; ++i)
            if (i < values)
                rate[i / 4][i % 4] += state[(4 * start + i) * APART];
    } else if (stage == NEXT) {
#pragma unroll
        for (int i = 0; i < 4 * NODES; ++i)
            if (i < values)
                rate[i / 4][i % 4] += __ldcg(old + i * TILE);
    } else if (stage == LAST) {
#pragma unroll
        for (int i = 0; i < 4 * NODES; ++i)
            if (i < values) {
                const REAL v = __ldcg(old + i * TILE);
                const REAL sum = (__ldcs(second + i * TILE) - v)
                                 + 2 * (__ldcs(third + i * TILE) - v)
                                 + (state[(4 * start + i) * APART] - v);
                rate[i / 4][i % 4] += sum * REAL(1.0 / 3);
                rate[i / 4][i % 4] += v;
            }
    }

    // Write the new state, and check whether it is that of a gas.
#pragma unroll
    for (int i = 0; i < NODES; ++i)
        if (4 * i < values) {
            const REAL(&w)[4] = rate[i];
#pragma unroll
            for (int c = 0; c < 4; ++c)
                out[at + (4 * i + c) * TILE] = w[c];
            const REAL squared = w[1] * w[1] + w[2] * w[2];
            const REAL kinetic = REAL(0.5) * squared;
            gas = gas && w[0] > 0 && w[0] * w[3] > kinetic;   // p > 0
        }
}
