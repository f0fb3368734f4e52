// What CUDA C++ has and C++ has not, for kernels that run on a CPU; see emulation.py.
//
// It comes before the kernel's macros, which are no names here then. What is no name of CUDA
// is in `emulated`. Behind the kernel comes `emulated::call`, which calls it.

#include <cmath>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#define __device__
#define __global__
#define __constant__
#define __shared__ static __attribute__((section("shared")))
#define __restrict__
#define __launch_bounds__(...)
struct float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static struct { unsigned x, y, z; } threadIdx, blockIdx, blockDim = {1, 1, 1}, gridDim = {1, 1, 1};

// -- shared memory ------------------------------------------------------------------------

// The linker's names of where the section begins and ends.
extern char __start_shared[] __attribute__((visibility("hidden")));
extern char __stop_shared[] __attribute__((visibility("hidden")));

namespace emulated {
alignas(16) __attribute__((section("shared"))) char memory[1 << 18];   // what a launch asks for
constexpr unsigned char POISON = 0xff;   // numbers of it are NaN, and indices lead outside

// -- threads ------------------------------------------------------------------------------

enum State { RUNNING, AT_WARP, AT_BLOCK, DONE };   // and where it waits

struct Copy { void* to; const void* from; };

struct Thread {
    ucontext_t start;
    jmp_buf place;
    bool started;
    State state;
    int products;               // on tensor cores
    std::vector<Copy> copies;   // under way
};
static std::vector<Thread> threads;
static int current;
static jmp_buf scheduler;
static void call();

static void wait(State state)
{
    threads[current].state = state;
    if (!_setjmp(threads[current].place))
        _longjmp(scheduler, 1);
}

static void begin()
{
    call();
    wait(DONE);
}

// A thread's next part, up to where it waits.
static State proceed(int i)
{
    threadIdx.x = current = i;
    if (!_setjmp(scheduler)) {
        if (threads[i].started)
            _longjmp(threads[i].place, 1);
        threads[i].started = true;
        setcontext(&threads[i].start);
    }
    return threads[current].state;
}

// A warp's next part, up to where the block waits.
static State proceed_together(int first, int end, bool backward)
{
    for (State all = AT_WARP; true; all = AT_WARP) {
        for (int i = first; i < end; ++i) {
            const State one = proceed(backward ? first + end - 1 - i : i);
            if (i > first && one != all)
                return RUNNING;   // which none of them is
            all = one;
        }
        if (all != AT_WARP)
            return all;
    }
}

static sigjmp_buf outside;
static void leave(int) { siglongjmp(outside, 1); }

// A look at memory that another process may write to; not for ever.
constexpr int LOOKS = 20000;   // 200 microseconds or more each
static int looks;
static void look_again()
{
    usleep(200);
    if (++looks == LOOKS)
        siglongjmp(outside, 2);
}

static const char* run_block(int count, size_t bytes, bool backward)
{
    memset(__start_shared, POISON, __stop_shared - __start_shared);
    for (State all = AT_BLOCK; all != DONE;) {
        for (int first = 0; first < count; first += 32) {
            const int begin = backward ? (count - 1) / 32 * 32 - first : first;
            const State one = proceed_together(begin, begin + 32 < count ? begin + 32 : count,
                                               backward);
            if (one == RUNNING || (first && one != all))
                return "threads meet at different barriers";
            all = one;
        }
    }
    for (size_t i = bytes; i < sizeof(memory); ++i)
        if ((unsigned char)memory[i] != POISON)
            return "a thread writes to shared memory that the launch does not ask for";
    return nullptr;
}

// All blocks of `count` threads, every other one with its threads in the opposite order.
// What is wrong, or null.
extern "C" const char* run(int blocks, int count, size_t bytes)
{
    const size_t size = 1 << 17;
    char* const stacks = new char[size * count];
    blockDim.x = count;
    gridDim.x = blocks;
    const char* trouble = nullptr;
    struct sigaction ours = {}, theirs;
    ours.sa_handler = leave;
    sigaction(SIGSEGV, &ours, &theirs);
    looks = 0;
    if (const int left = sigsetjmp(outside, 1))
        trouble = left == 1 ? "a thread reaches outside of what the process has of memory"
                            : "a thread waits in vain";
    else
        for (int block = 0; block < blocks && !trouble; ++block) {
            blockIdx.x = block;
            threads.assign(count, Thread());
            for (int i = 0; i < count; ++i) {
                ucontext_t& start = threads[i].start;
                getcontext(&start);
                start.uc_stack.ss_sp = &stacks[size * i];
                start.uc_stack.ss_size = size;
                makecontext(&start, begin, 0);
            }
            trouble = run_block(count, bytes, block % 2);
        }
    sigaction(SIGSEGV, &theirs, nullptr);
    delete[] stacks;
    return trouble;
}
}   // namespace emulated

// -- functions ----------------------------------------------------------------------------

static void __syncthreads() { emulated::wait(emulated::AT_BLOCK); }
static void __syncwarp() { emulated::wait(emulated::AT_WARP); }
static unsigned min(unsigned x, unsigned y) { return x < y ? x : y; }
template <class T> T __ldcs(const T* from) { return *from; }
template <class T> T __ldcg(const T* from) { return *from; }
template <class T> void __stcs(T* to, T value) { *to = value; }
static void atomicMin(int* least, int value) { *least = value < *least ? value : *least; }
static unsigned atomicAdd(unsigned* sum, unsigned value)
{
    return __atomic_fetch_add(sum, value, __ATOMIC_RELAXED);
}
static void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static void __nanosleep(unsigned) { emulated::look_again(); }
static long long clock64()  // five cycles from one look to the next
{
    static long long now = 0;
    return now += 5;
}
static unsigned __float_as_uint(float x)
{
    unsigned word;
    memcpy(&word, &x, 4);
    return word;
}
static float __uint_as_float(unsigned word)
{
    float x;
    memcpy(&x, &word, 4);
    return x;
}
static size_t __cvta_generic_to_shared(const void* address)
{
    return (const char*)address - __start_shared;
}

// -- instructions, by their names in PTX with _ for what no name may have ------------------

static void prefetch_global_L2(const void*) {}
static void st_relaxed_sys_global_u32(unsigned* to, unsigned value)
{
    __atomic_store_n(to, value, __ATOMIC_RELAXED);
}
static void ld_acquire_sys_global_u32(unsigned& value, const unsigned* from)
{
    value = __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

// A thread's copies arrive when it waits for them, and no sooner.
static void cp_async_cg_shared_global(unsigned to, const void* from, int)
{
    emulated::threads[emulated::current].copies.push_back({__start_shared + to, from});
}
static void cp_async_wait_all()
{
    auto& copies = emulated::threads[emulated::current].copies;
    for (const emulated::Copy& copy : copies)
        memcpy(copy.to, copy.from, 16);
    copies.clear();
}

static void rcp_approx_ftz_f32(float& y, float x) { y = 1 / x; }
static void rsqrt_approx_ftz_f32(float& y, float x) { y = 1 / std::sqrt(x); }
namespace emulated {
static double twenty_bits(double x) { return x * (1 + std::ldexp(1.0, -21)); }
}
static void rcp_approx_ftz_f64(double& y, double x) { y = emulated::twenty_bits(1 / x); }
static void rsqrt_approx_ftz_f64(double& y, double x) { y = emulated::twenty_bits(1 / std::sqrt(x)); }

// Products of a warp on tensor cores, d = a b + c of 8 ROWS x 4 STEPS by 4 STEPS x 8 numbers.
// With g = lane / 4 and t = lane % 4 a lane gives rows g, g + 8 and columns t, t + 4 of a, and
// rows t, t + 4 of column g of b; it gets columns 2 t and 2 t + 1 of rows g, g + 8 of d.
namespace emulated {
struct Given { double a[2][2], b[2]; };   // a: column, row
static Given given[2][1024];   // two, so that nobody replaces what others still read

static double rounded(double sum, double) { return sum; }
static float rounded(double sum, float)   // tensor cores cut off
{
    const float near = sum;
    return std::fabs(near) > std::fabs(sum) ? std::nextafter(near, 0.0f) : near;
}

template <int ROWS, int STEPS, class T>
static void multiply_add(T* const (&d)[ROWS][2], const Given& mine, const T (&c)[ROWS][2])
{
    Given* const warp = given[threads[current].products++ % 2] + current / 32 * 32;
    const int lane = current % 32;
    warp[lane] = mine;
    wait(AT_WARP);
    for (int i = 0; i < ROWS; ++i)
        for (int j = 0; j < 2; ++j) {
            double sum = c[i][j];
            for (int k = 0; k < 4 * STEPS; ++k)
                sum += warp[lane / 4 * 4 + k % 4].a[k / 4][i]
                       * warp[(lane % 4 * 2 + j) * 4 + k % 4].b[k / 4];
            *d[i][j] = rounded(sum, T());
        }
}

static double eleven_bits(unsigned word) { return __uint_as_float(word & 0xffffe000); }
}   // namespace emulated

static void mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32(
    float& d0, float& d1, float& d2, float& d3, unsigned a0, unsigned a1, unsigned a2,
    unsigned a3, unsigned b0, unsigned b1, float c0, float c1, float c2, float c3)
{
    using emulated::eleven_bits;
    emulated::multiply_add<2, 2, float>(
        {{&d0, &d1}, {&d2, &d3}},
        {{{eleven_bits(a0), eleven_bits(a1)}, {eleven_bits(a2), eleven_bits(a3)}},
         {eleven_bits(b0), eleven_bits(b1)}},
        {{c0, c1}, {c2, c3}});
}
static void mma_sync_aligned_m16n8k4_row_col_f64_f64_f64_f64(
    double& d0, double& d1, double& d2, double& d3, double a0, double a1, double b0,
    double c0, double c1, double c2, double c3)
{
    emulated::multiply_add<2, 1, double>({{&d0, &d1}, {&d2, &d3}}, {{{a0, a1}}, {b0}},
                               {{c0, c1}, {c2, c3}});
}
static void mma_sync_aligned_m8n8k4_row_col_f64_f64_f64_f64(
    double& d0, double& d1, double a0, double b0, double c0, double c1)
{
    emulated::multiply_add<1, 1, double>({{&d0, &d1}}, {{{a0}}, {b0}}, {{c0, c1}});
}
