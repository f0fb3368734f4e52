// Step 3 on tensor cores: J curl H and -J curl E, by STEP columns of D
// at a time.

// Contravariant components of J du/dt. Of each tile, a lane has nodes 2
// t and 2 t + 1 of element g and, where a product takes 16 elements, of
// g + 8.
using Rates = REAL[NODES][HALVES][2][6];

__device__ void add_curl(Rates& rates, const Place& place,
                         const VECTOR* state, const REAL* derivative)
{
    constexpr int TILE = COLUMNS / STEP * 3 * 32;   // pairs per tile
    const VECTOR* values =
        state + place.element * STATE + place.t * (PAIR * 6 / WIDTH);
    const REAL* entries =
        derivative + (place.tile * TILE + place.lane) * PAIR;
#pragma unroll DEPTH
    for (int m = 0; m < COLUMNS; m += STEP,
             values += STEP * 6 / WIDTH, entries += 3 * 32 * PAIR) {
        // Entries of the three D, and E and H at the nodes of their
        // columns.
        alignas(16) REAL v[HALVES][PAIR * 6], D[3][NODES][PAIR];
#pragma unroll
        for (int x = 0; x < 3; ++x)
#pragma unroll
            for (int i = 0; i < NODES * PAIR; ++i)
                D[x][i / PAIR][i % PAIR] =
                    entries[(i / PAIR * TILE + x * 32) * PAIR
                            + i % PAIR];
#pragma unroll
        for (int h = 0; h < HALVES; ++h)
            read(v[h], values + h * 8 * STATE);

        // Products can only be added: components 1, 3 and 5 have the
        // wrong sign until the end.
        const Operand<NODES> D1(D[0][0]), D2(D[1][0]), D3(D[2][0]);
#pragma unroll
        for (int f = 0; f < 3 * HALVES; f += 3) {
            // E, then H; in fp64 both together.
            constexpr int next = 3 * HALVES;
            const Operand<2> x(v[0] + f, next);
            add_product(rates, 4 - f, -1, x, D3);
            add_product(rates, 5 - f, -1, x, D2);
            const Operand<2> y(v[0] + f + 1, next);
            add_product(rates, 3 - f, -1, y, D3);
            add_product(rates, 5 - f, 1, y, D1);
            const Operand<2> z(v[0] + f + 2, next);
            add_product(rates, 3 - f, 1, z, D2);
            add_product(rates, 4 - f, 1, z, D1);
        }
    }
#pragma unroll
    for (int i = 0; i < NODES * HALVES * 2; ++i) {
        REAL(&rate)[6] = rates[i / 2 / HALVES][i / 2 % HALVES][i % 2];
        rate[1] = -rate[1], rate[3] = -rate[3], rate[5] = -rate[5];
    }
}
