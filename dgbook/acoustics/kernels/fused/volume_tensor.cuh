// Step 4 on tensor cores: -div v and -grad p, by STEP columns of D at a
// time; the signs are in the matrices.

__device__ void add_derivatives(Rates& rates, const Place& place,
                                const VECTOR* state,
                                const REAL* derivative)
{
    constexpr int TILE = COLUMNS / STEP * 3 * 32;   // Columns per tile
    const VECTOR* values =
        state + place.element * STATE + place.t * PAIR;
    const Columns* entries =
        (const Columns*)derivative + place.tile * TILE + place.lane;
#pragma unroll DEPTH
    for (int m = 0; m < COLUMNS;
         m += STEP, values += STEP, entries += 3 * 32) {
        // Entries of the three D, and the fields at the nodes of their
        // columns.
        alignas(16) REAL v[HALVES * PAIR][4];
        Columns D[3][NODES];
#pragma unroll
        for (int i = 0; i < 3 * NODES; ++i)
            D[i / NODES][i % NODES] =
                entries[i % NODES * TILE + i / NODES * 32];
#pragma unroll
        for (int i = 0; i < HALVES * PAIR; ++i)
            fields(v[i], values + i / PAIR * 8 * STATE + i % PAIR,
                   COLUMNS);

        // In fp32, -div v of this step; it is rounded once.
        REAL divergence[NODES][HALVES][2][1] = {};
#pragma unroll
        for (int x = 0; x < 3; ++x) {
            const Operand<NODES> matrix(D[x][0].x);
            if constexpr (HALVES == 2) {
                add_product(rates, x, 1, Operand<2>(v[0], 4), matrix);
                multiply(divergence, 0, Operand<2>(v[0] + 1 + x, 4),
                         matrix);
            } else {   // p and W together
                add_product(rates, x, 1, Operand<2>(v[0], 1 + x),
                            matrix);
            }
        }
#pragma unroll
        for (int i = 0; HALVES == 2 && i < NODES * HALVES * 2; ++i)
            rates[i / 2 / HALVES][i / 2 % HALVES][i % 2][3] +=
                divergence[i / 2 / HALVES][i / 2 % HALVES][i % 2][0];
    }
}
