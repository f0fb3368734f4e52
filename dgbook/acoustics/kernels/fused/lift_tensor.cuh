// Step 3 on tensor cores: lift the flux face by face, by STEP columns
// of LIFT at a time. Of each tile, a lane has nodes t and t + 4 of
// element g and, where a product takes 16 elements, of g + 8.

__device__ void add_lifted(Rates& rates, const Place& place,
                           const Shared& shared, const REAL* lift)
{
    constexpr int TILE = 4 * (FACE / STEP) * 32;   // Columns per tile
    const VECTOR* flux = shared.flux + place.element * FLUX;
    const Columns* values = (const Columns*)flux + place.t;
    const Columns* entries =
        (const Columns*)lift + place.tile * TILE + place.lane;
#pragma unroll
    for (int f = 0; f < 4; ++f) {
        const REAL* factor =
            shared.shape + place.element * GEOMETRY + 16 + f;
        REAL lifted[NODES][HALVES][2][1] = {};
#pragma unroll DEPTH
        for (int j = 0; j < FACE;
             j += STEP, values += 4, entries += 32) {
            Columns v[2], L[NODES];
#pragma unroll
            for (int i = 0; i < NODES; ++i)
                L[i] = entries[i * TILE];
            v[0] = values[0];
            if constexpr (HALVES == 2) {
                v[1] = values[8 * FLUX * WIDTH / PAIR];
                multiply(lifted, 0, Operand<2>(v[0].x),
                         Operand<NODES>(L[0].x));
            } else {   // times q for -grad p, and for -div v
                v[1] = v[0], v[0].x[0] *= factor[0];
                multiply(rates, f ? f - 1 : 0, Operand<2>(v[0].x),
                         Operand<NODES>(L[0].x));
            }
        }
        // The sum of a face is part of div v and of the gradient along
        // the face's normal.
#pragma unroll
        for (int i = 0; i < NODES * HALVES * 2; ++i) {
            const int h = i / 2 % HALVES;
            REAL(&rate)[PARTS] = rates[i / 2 / HALVES][h][i % 2];
            if constexpr (HALVES == 2)
                add_face(rate, f, factor[h * 8 * GEOMETRY],
                         lifted[i / 2 / HALVES][h][i % 2][0]);
            else if (f == 0)
                rate[1] = rate[2] = rate[0];
        }
    }
}
