// A matrix in slices of 32 rows, and a tile of them with the x that it meets.
//
// Macros: REAL and VECTOR (float4 or double2); SIZE, the unknowns of a face,
// and BLOCKS, the blocks of a row; FACES, those that a tile's rows can belong
// to, and STRIDE from the x of one to the next; and the plan: WARPS, SPLIT,
// UNROLL, RESIDENT. See dgbook/hdg/plan.py.

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

// x of the faces that rows from `first` on meet: a thread for an unknown of each.
__device__ void gather(VECTOR* gathered, const REAL* x, const int* columns, unsigned first,
                       unsigned faces)
{
#pragma unroll AT_ONCE
    for (unsigned r = 0; r < ROUNDS; ++r) {
        const unsigned e = threadIdx.x + r * THREADS;
        const unsigned place = min(e / SIZE, FACES - 1), j = e % SIZE;
        const unsigned face = min(first / SIZE + place, faces - 1);
        REAL near[BLOCKS];
#pragma unroll
        for (unsigned b = 0; b < BLOCKS; ++b)
            near[b] = x[(unsigned)columns[face * BLOCKS + b] * SIZE + j];
#pragma unroll
        for (unsigned b = 0; b < BLOCKS; ++b)
            if (e < FACES * SIZE)
                ((REAL*)gathered)[place * STRIDE + b * SIZE + j] = near[b];
    }
}
