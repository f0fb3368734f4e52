// y = A x in slices of 32 rows: as dgbook/hdg/kernels/sliced.py, with
// loads of 16 bytes, and with several warps per slice where rows are
// long.
//
// Macros as in slices.cuh.

#include "slices.cuh"

// A is stored by sliced(values, WIDTH). Warp w works on slice w / SPLIT
// of the block's tile, on every SPLIT-th group of its columns.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) wide(
    const REAL* __restrict__ values, const int* __restrict__ columns,
    const REAL* __restrict__ x, REAL* __restrict__ y, unsigned faces)
{
    __shared__ VECTOR gathered[FACES * STRIDE / WIDTH];
    const unsigned lane = threadIdx.x % LANES;
    const unsigned warp = threadIdx.x / LANES;
    const unsigned part = warp % SPLIT, rows = faces * SIZE;
    const unsigned first = blockIdx.x * ROWS;
    const unsigned row = first + warp / SPLIT * LANES + lane;
    const unsigned slice = min(row, rows - 1) / LANES;
    const REAL* entries = values + (size_t)slice * (LANES * COLUMNS);
    const VECTOR* stream = (const VECTOR*)entries + lane;

    // 1. Issue the first loads of the matrix before anything else, and
    // those of the remaining columns.
    VECTOR loaded[DEPTH];
#pragma unroll
    for (unsigned u = 0; u < DEPTH; ++u)
        if (part + u * SPLIT < GROUPS)
            loaded[u] = __ldcs(stream + (part + u * SPLIT) * LANES);
    REAL left[LEFT + 1];
#pragma unroll
    for (unsigned r = 0; r < LEFT; ++r)
        if (part == r % SPLIT)
            left[r] = __ldcs(entries + (GROUPS * WIDTH + r) * LANES
                             + lane);

    // 2. Gather x.
    gather(gathered, x, columns, first, faces);
    __syncthreads();

    // 3. Contract. Each number that was used makes room for the next
    // one.
    const unsigned face = min(row, rows - 1) / SIZE - first / SIZE;
    const REAL* near = (const REAL*)gathered + face * STRIDE;
    REAL sum = 0;
#pragma unroll 1
    for (unsigned k = part; k < GROUPS; k += DEPTH * SPLIT)
#pragma unroll
        for (unsigned u = 0; u < DEPTH; ++u) {
            const unsigned group = k + u * SPLIT;
            const unsigned next = group + DEPTH * SPLIT;
            if (group < GROUPS)
                sum += dot(loaded[u], ((const VECTOR*)near)[group]);
            if (next < GROUPS)
                loaded[u] = __ldcs(stream + next * LANES);
        }
#pragma unroll
    for (unsigned r = 0; r < LEFT; ++r)
        if (part == r % SPLIT)
            sum += left[r] * near[GROUPS * WIDTH + r];

    // 4. Add up the sums of a slice's warps.
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
