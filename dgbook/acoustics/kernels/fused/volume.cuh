// Step 4, without tensor cores: -div v and -grad p, by two columns of D
// at a time; the signs are in the matrices.

__device__ void add_derivatives(Rates& rates, const Place& place,
                                const VECTOR* state,
                                const REAL* derivative)
{
    const VECTOR* values = state + place.element * STATE;
    const COUPLE* entries = (const COUPLE*)derivative + place.lane;
#pragma unroll DEPTH
    for (int m = 0; m < COLUMNS;
         m += 2, values += 2, entries += NODES * 3 * LANES) {
        // Entries of D at this thread's nodes; they serve all elements.
        COUPLE D[NODES][3];
#pragma unroll
        for (int i = 0; i < NODES * 3; ++i)
            D[i / 3][i % 3] = entries[i * LANES];
#pragma unroll
        for (int k = 0; k < INLINE; ++k) {
            // The fields at nodes m and m + 1; they serve all nodes of
            // this thread.
            alignas(16) REAL v[4], w[4];
            fields(v, values + k * STATE, COLUMNS);
            fields(w, values + k * STATE + 1, COLUMNS);
#pragma unroll
            for (int i = 0; i < NODES; ++i)
#pragma unroll
                for (int x = 0; x < 3; ++x) {
                    rates[i][k][0][x] += D[i][x].x * v[0];
                    rates[i][k][0][3] += D[i][x].x * v[1 + x];
                    rates[i][k][0][x] += D[i][x].y * w[0];
                    rates[i][k][0][3] += D[i][x].y * w[1 + x];
                }
        }
    }
}
