// Steps 4 and 5 on tensor cores.

// Lift the flux face by face, by STEP columns of LIFT at a time.
__device__ void add_lifted(Rates& rates, const Place& place,
                           const Shared& shared, const REAL* lift)
{
    constexpr int TILE = 4 * (FACE / STEP) * 32;   // pairs per tile
    const VECTOR* values = shared.flux + place.element * FLUX
                           + place.t * (PAIR * 2 / WIDTH);
    const REAL* entries =
        lift + (place.tile * TILE + place.lane) * PAIR;
#pragma unroll
    for (int f = 0; f < 4; ++f) {
        REAL lifted[NODES][HALVES][2][2] = {};
#pragma unroll DEPTH
        for (int j = 0; j < FACE; j += STEP,
                 values += STEP * 2 / WIDTH, entries += 32 * PAIR) {
            alignas(16) REAL v[HALVES][PAIR * 2], L[NODES][PAIR];
#pragma unroll
            for (int i = 0; i < NODES * PAIR; ++i)
                L[i / PAIR][i % PAIR] =
                    entries[i / PAIR * TILE * PAIR + i % PAIR];
#pragma unroll
            for (int h = 0; h < HALVES; ++h)
                read(v[h], values + h * 8 * FLUX);
            const Operand<NODES> matrix(L[0]);
#pragma unroll
            for (int k = 0; k < HALVES; ++k)
                multiply(lifted, k, Operand<2>(v[0] + k, HALVES),
                         matrix);
        }
        // The sums of a face are components along its own tangents.
#pragma unroll
        for (int i = 0; i < NODES * HALVES * 2; ++i) {
            const int h = i / 2 % HALVES;
            const REAL(&both)[2] = lifted[i / 2 / HALVES][h][i % 2];
            const REAL* shape =
                shared.shape + (place.element + h * 8) * GEOMETRY;
            add_face(rates[i / 2 / HALVES][h][i % 2], f,
                     shape + 6 + f * 3, both[0], both[1]);
        }
    }
}

// Store du/dt in shared memory: two neighboring nodes of a lane make
// three VECTORs or six.
__device__ void store_rates(const Rates& rates, const Place& place,
                            const Shared& shared)
{
#pragma unroll
    for (int i = 0; i < NODES * HALVES; ++i) {
        constexpr int VECTORS = 12 / WIDTH;   // of a pair of nodes
        const int h = i % HALVES;
        const int pair = (place.tile + i / HALVES) * 4 + place.t;
        const unsigned e = place.element + h * 8;
        const REAL* shape = shared.shape + e * GEOMETRY;
        VECTOR* to = shared.rate + e * STATE + pair * VECTORS;
        alignas(16) REAL lowered[12];
        lower(lowered, rates[i / HALVES][h][0], shape);
        lower(lowered + 6, rates[i / HALVES][h][1], shape);
        if (2 * pair < NP)
#pragma unroll
            for (int k = 0; k < VECTORS; ++k)
                to[k] = ((VECTOR*)lowered)[k];
    }
}
