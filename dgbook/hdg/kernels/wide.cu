// y = A x in slices of 32 rows: dgbook/hdg/kernels/sliced.py with loads of 16
// bytes, and several warps for a slice where rows are long.
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

// A is stored by sliced(values, WIDTH). Warp w works on slice w / SPLIT of the
// block's tile, on every SPLIT-th group of its columns.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) wide(
    const REAL* __restrict__ values, const int* __restrict__ columns,
    const REAL* __restrict__ x, REAL* __restrict__ y, unsigned faces)
{
    __shared__ VECTOR gathered[FACES * STRIDE / WIDTH];
    const unsigned lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const unsigned part = warp % SPLIT, rows = faces * SIZE;
    const unsigned first = blockIdx.x * ROWS;
    const unsigned row = first + warp / SPLIT * LANES + lane;
    const unsigned slice = min(row, rows - 1) / LANES;
    const REAL* mine = values + (size_t)slice * (LANES * COLUMNS);
    const VECTOR* stream = (const VECTOR*)mine + lane;

    // 1. What is needed of the matrix first is under way before anything else,
    // and the columns that are left over.
    VECTOR loaded[DEPTH];
#pragma unroll
    for (unsigned u = 0; u < DEPTH; ++u)
        if (part + u * SPLIT < GROUPS)
            loaded[u] = __ldcs(stream + (part + u * SPLIT) * LANES);
    REAL left[LEFT + 1];
#pragma unroll
    for (unsigned r = 0; r < LEFT; ++r)
        if (part == r % SPLIT)
            left[r] = __ldcs(mine + (GROUPS * WIDTH + r) * LANES + lane);

    // 2. Gather x: a thread for an unknown of each face that one here meets.
#pragma unroll AT_ONCE
    for (unsigned r = 0; r < ROUNDS; ++r) {
        const unsigned e = threadIdx.x + r * THREADS;
        const unsigned here = min(e / SIZE, FACES - 1), j = e % SIZE;
        const unsigned face = min(first / SIZE + here, faces - 1);
        REAL near[BLOCKS];
#pragma unroll
        for (unsigned b = 0; b < BLOCKS; ++b)
            near[b] = x[(unsigned)columns[face * BLOCKS + b] * SIZE + j];
#pragma unroll
        for (unsigned b = 0; b < BLOCKS; ++b)
            if (e < FACES * SIZE)
                ((REAL*)gathered)[here * STRIDE + b * SIZE + j] = near[b];
    }
    __syncthreads();

    // 3. Contract. A number that was used makes room for the next one.
    const unsigned face = min(row, rows - 1) / SIZE - first / SIZE;
    const REAL* near = (const REAL*)gathered + face * STRIDE;
    REAL sum = 0;
#pragma unroll 1
    for (unsigned k = part; k < GROUPS; k += DEPTH * SPLIT)
#pragma unroll
        for (unsigned u = 0; u < DEPTH; ++u) {
            const unsigned group = k + u * SPLIT, next = group + DEPTH * SPLIT;
            if (group < GROUPS)
                sum += dot(loaded[u], ((const VECTOR*)near)[group]);
            if (next < GROUPS)
                loaded[u] = __ldcs(stream + next * LANES);
        }
#pragma unroll
    for (unsigned r = 0; r < LEFT; ++r)
        if (part == r % SPLIT)
            sum += left[r] * near[GROUPS * WIDTH + r];

    // 4. Add up what the warps of a slice have.
    if constexpr (SPLIT > 1) {
        __shared__ REAL partial[THREADS];
        partial[threadIdx.x] = sum;
        __syncthreads();
        if (part != 0)
            return;
#pragma unroll
        for (unsigned p = 1; p < SPLIT; ++p)
            sum += partial[threadIdx.x + p * LANES];
    }
    if (row < rows)
        y[row] = sum;
}
