// A matrix in slices of 32 rows, and a tile of them with the x that it
// needs.
//
// Macros: REAL and VECTOR (float4 or double2); SIZE, the unknowns per
// face, and BLOCKS, the blocks per row; FACES, the number of faces to
// which a tile's rows can belong, and STRIDE, the distance from the x
// of one to the x of the next; and the plan: WARPS, SPLIT, UNROLL,
// RESIDENT. See dgbook/hdg/plan.py.

constexpr unsigned LANES = 32, THREADS = LANES * WARPS;
constexpr unsigned WIDTH = sizeof(VECTOR) / sizeof(REAL);
constexpr unsigned COLUMNS = BLOCKS * SIZE, ROWS = THREADS / SPLIT;
constexpr unsigned GROUPS = COLUMNS / WIDTH, LEFT = COLUMNS % WIDTH;
constexpr unsigned ROUNDS = (FACES * SIZE + THREADS - 1) / THREADS;
constexpr unsigned AT_ONCE = ROUNDS < 2 ? 1 : 2;
constexpr unsigned DEPTH = UNROLL;   // pragmas take no macro

__device__ REAL dot(float4 a, float4 x)
{
    return a.x * x.x + a.y * x.y + a.z * x.z + a.w * x.w;
}

__device__ REAL dot(double2 a, double2 x)
{
    return a.x * x.x + a.y * x.y;
}

// Gather x for the faces of the tile's rows, which begin at `first`.
// Each thread gathers one unknown of every block of a row.
__device__ void gather(VECTOR* gathered, const REAL* x,
                       const int* columns, unsigned first,
                       unsigned faces)
{
#pragma unroll AT_ONCE
    for (unsigned r = 0; r < ROUNDS; ++r) {
        const unsigned e = threadIdx.x + r * THREADS;
        const unsigned place = min(e / SIZE, FACES - 1), j = e % SIZE;
        const unsigned face = min(first / SIZE + place, faces - 1);
        REAL near[BLOCKS];
#pragma unroll
        for (unsigned b = 0; b < BLOCKS; ++b) {
            const unsigned column = columns[face * BLOCKS + b];
            near[b] = x[column * SIZE + j];
        }
#pragma unroll
        for (unsigned b = 0; b < BLOCKS; ++b) {
            const unsigned to = place * STRIDE + b * SIZE + j;
            if (e < FACES * SIZE)
                ((REAL*)gathered)[to] = near[b];
        }
    }
}
