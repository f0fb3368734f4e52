// Step 3, without tensor cores: lift the flux face by face, by two
// columns of LIFT at a time.

__device__ void add_lifted(Rates& rates, const Place& place,
                           const Shared& shared, const REAL* lift)
{
    const VECTOR* flux = shared.flux + place.element * FLUX;
    const REAL* values = (const REAL*)flux;
    const COUPLE* entries = (const COUPLE*)lift + place.lane;
#pragma unroll
    for (int f = 0; f < 4; ++f) {
        REAL lifted[NODES][INLINE] = {};
#pragma unroll DEPTH
        for (int j = 0; j < FACE;
             j += 2, values += 2, entries += NODES * LANES) {
            COUPLE L[NODES];
#pragma unroll
            for (int i = 0; i < NODES; ++i)
                L[i] = entries[i * LANES];
#pragma unroll
            for (int k = 0; k < INLINE; ++k) {
                const REAL* at = values + k * FLUX * WIDTH;
                const COUPLE v = *(const COUPLE*)at;
#pragma unroll
                for (int i = 0; i < NODES; ++i) {
                    lifted[i][k] += L[i].x * v.x;
                    lifted[i][k] += L[i].y * v.y;
                }
            }
        }
        // The sum of a face is part of div v and of the gradient along
        // the face's normal.
#pragma unroll
        for (int i = 0; i < NODES * INLINE; ++i) {
            const REAL* shape =
                shared.shape + (place.element + i % INLINE) * GEOMETRY;
            add_face(rates[i / INLINE][i % INLINE][0], f, shape[16 + f],
                     lifted[i / INLINE][i % INLINE]);
        }
    }
}
