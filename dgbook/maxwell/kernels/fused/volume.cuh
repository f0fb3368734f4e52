// Step 3, without tensor cores: J curl H and -J curl E, by two columns
// of D at a time.

// Contravariant components of J du/dt at a thread's nodes of its row's
// elements.
using Rates = REAL[NODES][INLINE][6];

__device__ void add_curl(Rates& rates, const Place& place,
                         const VECTOR* state, const REAL* derivative)
{
    const REAL* values = (const REAL*)(state + place.row * STATE);
    const COUPLE* entries = (const COUPLE*)derivative + place.lane;
#pragma unroll DEPTH
    for (int m = 0; m < COLUMNS;
         m += 2, values += 12, entries += NODES * 3 * LANES) {
        // Entries of D at this thread's nodes; they serve all elements.
        COUPLE D[NODES][3];
#pragma unroll
        for (int i = 0; i < NODES * 3; ++i)
            D[i / 3][i % 3] = entries[i * LANES];
#pragma unroll
        for (int e = 0; e < INLINE; ++e) {
            // E and H at nodes m and m + 1; they serve all nodes of
            // this thread.
            alignas(16) REAL v[12];
            read(v, values + e * SIZE);
#pragma unroll
            for (int i = 0; i < NODES; ++i)
#pragma unroll
                for (int x = 0; x < 3; ++x) {
                    const int y = (x + 1) % 3, z = (x + 2) % 3;
                    rates[i][e][x] += D[i][y].x * v[3 + z];
                    rates[i][e][x] -= D[i][z].x * v[3 + y];
                    rates[i][e][3 + x] -= D[i][y].x * v[z];
                    rates[i][e][3 + x] += D[i][z].x * v[y];
                    rates[i][e][x] += D[i][y].y * v[9 + z];
                    rates[i][e][x] -= D[i][z].y * v[9 + y];
                    rates[i][e][3 + x] -= D[i][y].y * v[6 + z];
                    rates[i][e][3 + x] += D[i][z].y * v[6 + y];
                }
        }
    }
}
