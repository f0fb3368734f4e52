// Traces written into the memory of the GPU that needs them, flags that
// say so, and how it waits for them.
//
// Macros: REAL; BUFFERS, how many a part receives into by turns; ROWS,
// COLUMNS and NODES of a matrix per face that traces are multiplied
// with, or COLUMNS = 0 where they travel as they are.
//
// An exchange is `store`, `await_peers` and `fetch`, one after another
// in a stream. `rounds` counts the exchanges that this GPU has waited
// for. It is in device memory, so a recording finds it grown when it is
// replayed. A flag holds how many times its sender has sent.
//
// Two buffers suffice. A part that is a round ahead writes into the
// other buffer than the one that is being read. It can't be two ahead:
// before round r + 2 it has waited for what the other part sent in
// round r + 1, and that part's stream has read round r before it sends.

constexpr unsigned NAP = 20;   // nanoseconds between two looks

// A number of what travels, of which `trace(j)` are the numbers before.
template <class Trace>
__device__ REAL number(const REAL* matrices, unsigned i, Trace trace)
{
#if COLUMNS
    const unsigned node = i % NODES;
    const unsigned row = i / NODES;   // of all faces' matrices
    const unsigned first = row / ROWS * COLUMNS * NODES + node;
    REAL total = matrices[row * COLUMNS] * trace(first);
    for (unsigned j = 1; j < COLUMNS; ++j)
        total += matrices[row * COLUMNS + j] * trace(first + j * NODES);
    return total;
#else
    return trace(i);
#endif
}

// Gather traces from places `there` of the state and write them where
// other parts receive them: message m has the numbers from ends[m] up
// to ends[m + 1], and `blocks` blocks. Its buffers are at the addresses
// from buffers[m * BUFFERS] on, its flag is at flags[m].
extern "C" __global__ void store(
    const REAL* state, const unsigned* there, const REAL* matrices,
    const unsigned* ends, const unsigned long long* buffers,
    const unsigned long long* flags, const unsigned* rounds,
    unsigned* arrived, unsigned blocks)
{
    const unsigned m = blockIdx.x / blocks, round = *rounds;
    REAL* to = (REAL*)buffers[m * BUFFERS + round % BUFFERS];
    const unsigned first = ends[m], last = ends[m + 1];
    const auto trace = [=](unsigned j) { return state[there[j]]; };
    unsigned i = blockIdx.x % blocks * blockDim.x + threadIdx.x;
    for (i += first; i < last; i += blocks * blockDim.x)
        to[i - first] = number(matrices, i, trace);

    // The barrier hands the block's writes to its first thread, whose
    // fence puts them before its count for everybody, on any GPU.
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    __threadfence_system();
    if (atomicAdd(&arrived[m], 1u) + 1 < blocks)
        return;
    arrived[m] = 0;   // for the next round
    // All blocks have counted. What they wrote comes before the flag.
    __threadfence_system();
    unsigned* flag = (unsigned*)flags[m];
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;"
                 :: "l"(flag), "r"(round + 1) : "memory");
}

// Wait until the peers that send here have sent in this round. A block
// of one warp; flags[peers[i]] is written by peer i.
extern "C" __global__ void await_peers(
    const unsigned* flags, const unsigned* peers, unsigned count,
    unsigned* rounds)
{
    const unsigned next = *rounds + 1;
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
        const unsigned* flag = &flags[peers[i]];
        unsigned sent;
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                     : "=r"(sent) : "l"(flag) : "memory");
        while ((int)(sent - next) < 0) {   // also beyond 2^32 rounds
            __nanosleep(NAP);
            asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                         : "=r"(sent) : "l"(flag) : "memory");
        }
    }
    __syncthreads();   // all have read the count
    if (threadIdx.x == 0)
        *rounds = next;
}

// Scatter what the last round has brought to places `here` of the
// state; a buffer has `stride` numbers.
extern "C" __global__ void fetch(
    const REAL* buffers, unsigned stride, const REAL* matrices,
    REAL* state, const unsigned* here, unsigned count,
    const unsigned* rounds)
{
    const REAL* from = buffers + (*rounds - 1) % BUFFERS * stride;
    const auto trace = [=](unsigned j) { return from[j]; };
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        state[here[i]] = number(matrices, i, trace);
}
