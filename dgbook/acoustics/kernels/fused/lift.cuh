// Step 3, without tensor cores: lift face by face, by two columns of LIFT at a time.

__device__ void add_lifted(Rates& rates, const Place& place, const Shared& shared, const REAL* lift)
{
    const REAL* values = (const REAL*)(shared.flux + place.element * FLUX);
    const COUPLE* entries = (const COUPLE*)lift + place.lane;
#pragma unroll
    for (int f = 0; f < 4; ++f) {
        REAL lifted[NODES][INLINE] = {};
#pragma unroll DEPTH
        for (int j = 0; j < FACE; j += 2, values += 2, entries += NODES * LANES) {
            COUPLE L[NODES];
#pragma unroll
            for (int i = 0; i < NODES; ++i)
                L[i] = entries[i * LANES];
#pragma unroll
            for (int k = 0; k < INLINE; ++k) {
                const COUPLE v = *(const COUPLE*)(values + k * FLUX * WIDTH);
#pragma unroll
                for (int i = 0; i < NODES; ++i)
                    lifted[i][k] += L[i].x * v.x, lifted[i][k] += L[i].y * v.y;
            }
        }
        // The sum of a face belongs to div v and to the gradient along its normal.
#pragma unroll
        for (int i = 0; i < NODES * INLINE; ++i)
            add_face(rates[i / INLINE][i % INLINE][0], f,
                     shared.shape[(place.element + i % INLINE) * GEOMETRY + 16 + f],
                     lifted[i / INLINE][i % INLINE]);
    }
}
