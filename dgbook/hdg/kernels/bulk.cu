// y = A x in slices of 32 rows, which bulk copies load into shared
// memory. Unlike in dgbook/hdg/kernels/wide.cu, loads in flight need no
// registers, and they continue while the block gathers x. For compute
// capability 9.0 or higher.
//
// Macros as in slices.cuh; STAGES, the copies that a warp has in
// flight, with UNROLL groups of columns each; and TURNS, the tiles per
// block.

#include "slices.cuh"
#include "bulk_copies.cuh"

// A is stored by sliced(values, WIDTH). A block works on TURNS tiles,
// one after the other. Warp w works on slice w / SPLIT of each tile, on
// part w % SPLIT of the slice.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) bulk(
    const REAL* __restrict__ values, const int* __restrict__ columns,
    const REAL* __restrict__ x, REAL* __restrict__ y, unsigned faces)
{
    // The gathered x; behind it stages, barriers and sums.
    extern __shared__ VECTOR gathered[];
    const unsigned lane = threadIdx.x % LANES;
    const unsigned warp = threadIdx.x / LANES;
    char* const ring = (char*)gathered + X_BYTES;
    char* const stages = ring + warp * STAGES * STAGE_BYTES;
    char* const end = ring + WARPS * STAGES * STAGE_BYTES;
    const unsigned barriers =
        __cvta_generic_to_shared(end) + warp * STAGES * 8;
    REAL* const partial = (REAL*)(end + WARPS * STAGES * 8);
    const unsigned part = warp % SPLIT, rows = faces * SIZE;
    const unsigned slices = (rows + LANES - 1) / LANES;
    const unsigned tile = blockIdx.x * TURNS;
    const bool last_part = part == SPLIT - 1;

    // Issue copy n of this warp, to stage n % STAGES, by one lane for
    // all.
    const auto issue = [&](unsigned n) {
        const unsigned slice =
            (tile + n / COPIES) * (ROWS / LANES) + warp / SPLIT;
        const unsigned c = n % COPIES, stage = n % STAGES;
        if (lane != 0 || n >= TURNS * COPIES || slice >= slices)
            return;
        const uint2 groups = brought(part, c);
        unsigned bytes = (groups.y - groups.x) * GROUP_BYTES;
        if (last_part && c == COPIES - 1)
            bytes += LEFT_BYTES;
        const char* from =
            (const char*)(values + (size_t)slice * (LANES * COLUMNS));
        const unsigned barrier = barriers + stage * 8;
        expect(barrier, bytes);
        if (bytes > 0)
            copy(__cvta_generic_to_shared(stages + stage * STAGE_BYTES),
                 from + groups.x * GROUP_BYTES, bytes, barrier);
    };

    // 1. Fill the stages.
    if (lane == 0)
        for (unsigned s = 0; s < STAGES; ++s)
            initialize(barriers + s * 8);
    __syncwarp();
    for (unsigned s = 0; s < STAGES; ++s)
        issue(s);

    unsigned n = 0;
    for (unsigned turn = 0; turn < TURNS; ++turn) {
        const unsigned first = (tile + turn) * ROWS;
        if (first >= rows)
            return;

        // 2. Gather x when all warps are done with the tile before.
        if (turn > 0)
            __syncthreads();
        gather(gathered, x, columns, first, faces);
        __syncthreads();

        // 3. Contract what has arrived, and issue the next copy to its
        // place.
        const unsigned row = first + warp / SPLIT * LANES + lane;
        const unsigned face = min(row, rows - 1) / SIZE - first / SIZE;
        const REAL* near = (const REAL*)gathered + face * STRIDE;
        REAL sum = 0;
        if (row / LANES < slices) {
            for (unsigned c = 0; c < COPIES; ++c, ++n) {
                const uint2 groups = brought(part, c);
                const char* stage = stages + n % STAGES * STAGE_BYTES;
                wait(barriers + n % STAGES * 8, n / STAGES % 2);
#pragma unroll
                for (unsigned u = 0; u < DEPTH; ++u)
                    if (groups.x + u < groups.y)
                        sum += dot(
                            ((const VECTOR*)stage)[u * LANES + lane],
                            ((const VECTOR*)near)[groups.x + u]);
                if (last_part && c == COPIES - 1) {
                    stage += (groups.y - groups.x) * GROUP_BYTES;
#pragma unroll
                    for (unsigned r = 0; r < LEFT; ++r)
                        sum += ((const REAL*)stage)[r * LANES + lane]
                               * near[GROUPS * WIDTH + r];
                }
                __syncwarp();
                issue(n + STAGES);
            }
        }

        // 4. Add up the sums of a slice's warps.
        if constexpr (SPLIT > 1) {
            partial[threadIdx.x] = sum;
            __syncthreads();
            if (part == 0)
#pragma unroll
                for (unsigned p = 1; p < SPLIT; ++p)
                    sum += partial[threadIdx.x + p * LANES];
        }
        if (part == 0 && row < rows)
            y[row] = sum;
    }
}
