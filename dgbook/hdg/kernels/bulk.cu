// y = A x in slices of 32 rows that bulk copies bring to shared memory: as
// dgbook/hdg/kernels/wide.cu, but what is under way needs no registers, and
// goes on while the block gathers x. From compute capability 9.0 on.
//
// Macros as in wide.cu; STAGES, the copies that a warp has under way, of UNROLL
// groups of columns each; and TURNS, the tiles of a block.

constexpr unsigned LANES = 32, THREADS = LANES * WARPS;
constexpr unsigned WIDTH = sizeof(VECTOR) / sizeof(REAL);
constexpr unsigned COLUMNS = BLOCKS * SIZE, ROWS = THREADS / SPLIT;
constexpr unsigned GROUPS = COLUMNS / WIDTH, LEFT = COLUMNS % WIDTH;
constexpr unsigned ROUNDS = (FACES * SIZE + THREADS - 1) / THREADS;
constexpr unsigned AT_ONCE = ROUNDS < 2 ? 1 : 2;
constexpr unsigned DEPTH = UNROLL;

// A warp's part of a slice, and its copies. The last part's last one brings
// the columns that are left over too.
constexpr unsigned PART = (GROUPS + SPLIT - 1) / SPLIT;
constexpr unsigned COPIES = PART > DEPTH ? (PART + DEPTH - 1) / DEPTH : 1;
constexpr unsigned GROUP_BYTES = LANES * sizeof(VECTOR);
constexpr unsigned LEFT_BYTES = LANES * LEFT * sizeof(REAL);
constexpr unsigned STAGE_BYTES = DEPTH * GROUP_BYTES + LEFT_BYTES;
constexpr unsigned X_BYTES = FACES * STRIDE * sizeof(REAL);   // whole vectors

__device__ REAL dot(float4 a, float4 x)
{
    return a.x * x.x + a.y * x.y + a.z * x.z + a.w * x.w;
}

__device__ REAL dot(double2 a, double2 x)
{
    return a.x * x.x + a.y * x.y;
}

// Barriers that count bytes (PTX ISA, "mbarrier"), by their shared address.
__device__ void initialise(unsigned barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                 "fence.mbarrier_init.release.cluster;" ::"r"(barrier)
                 : "memory");
}

__device__ void expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(barrier), "r"(bytes)
                 : "memory");
}

__device__ void wait(unsigned barrier, unsigned parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(barrier), "r"(parity)
                 : "memory");
}

__device__ void copy(unsigned to, const void* from, unsigned bytes,
                     unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global"
                 ".mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(to), "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

// The groups of columns that copy c of a part brings.
__device__ uint2 brought(unsigned part, unsigned c)
{
    const unsigned begin = min(part * PART + c * DEPTH, GROUPS);
    const unsigned end = min((part + 1) * PART, GROUPS);
    return {begin, max(begin, min(begin + DEPTH, end))};
}

// A is stored by sliced(values, WIDTH). A block has TURNS tiles, one after the
// other. Warp w works on slice w / SPLIT of each, on part w % SPLIT.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) bulk(
    const REAL* __restrict__ values, const int* __restrict__ columns,
    const REAL* __restrict__ x, REAL* __restrict__ y, unsigned faces)
{
    extern __shared__ VECTOR gathered[];   // x; then stages, barriers, sums
    const unsigned lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    char* const ring = (char*)gathered + X_BYTES;
    char* const stages = ring + warp * STAGES * STAGE_BYTES;
    char* const end = ring + WARPS * STAGES * STAGE_BYTES;
    const unsigned barriers = __cvta_generic_to_shared(end) + warp * STAGES * 8;
    REAL* const partial = (REAL*)(end + WARPS * STAGES * 8);
    const unsigned part = warp % SPLIT, rows = faces * SIZE;
    const unsigned slices = (rows + LANES - 1) / LANES;
    const unsigned tile = blockIdx.x * TURNS;
    const bool last_part = part == SPLIT - 1;

    // Copy n of this warp, to stage n % STAGES; one lane speaks for all.
    const auto issue = [&](unsigned n) {
        const unsigned slice
            = (tile + n / COPIES) * (ROWS / LANES) + warp / SPLIT;
        const unsigned c = n % COPIES, stage = n % STAGES;
        if (lane != 0 || n >= TURNS * COPIES || slice >= slices)
            return;
        const uint2 groups = brought(part, c);
        unsigned bytes = (groups.y - groups.x) * GROUP_BYTES;
        if (last_part && c == COPIES - 1)
            bytes += LEFT_BYTES;
        const char* from
            = (const char*)(values + (size_t)slice * (LANES * COLUMNS));
        const unsigned barrier = barriers + stage * 8;
        expect(barrier, bytes);
        if (bytes > 0)
            copy(__cvta_generic_to_shared(stages + stage * STAGE_BYTES),
                 from + groups.x * GROUP_BYTES, bytes, barrier);
    };

    // 1. Fill the stages.
    if (lane == 0)
        for (unsigned s = 0; s < STAGES; ++s)
            initialise(barriers + s * 8);
    __syncwarp();
    for (unsigned s = 0; s < STAGES; ++s)
        issue(s);

    unsigned n = 0;
    for (unsigned turn = 0; turn < TURNS; ++turn) {
        const unsigned first = (tile + turn) * ROWS;
        if (first >= rows)
            return;

        // 2. Gather x, when all are done with that of the tile before.
        if (turn > 0)
            __syncthreads();
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

        // 3. Contract what has come, and ask for more in its place.
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
                        sum += dot(((const VECTOR*)stage)[u * LANES + lane],
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

        // 4. Add up what the warps of a slice have.
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
