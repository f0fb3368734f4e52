// Memory access 16 bytes at a time, for kernels of one precision.
//
// Before it is included: macros REAL and VECTOR (16 bytes of them).

__device__ constexpr int round_up(int n, int unit)
{
    return (n + unit - 1) / unit * unit;
}

constexpr int WIDTH = sizeof(VECTOR) / sizeof(REAL);   // numbers

// Load N numbers; both addresses are multiples of 16 bytes.
template <int N> __device__ void read(REAL (&to)[N], const void* from)
{
#pragma unroll
    for (int i = 0; i < N / WIDTH; ++i)
        ((VECTOR*)to)[i] = ((const VECTOR*)from)[i];
}

// Copy from global to shared memory, bypassing the registers where the
// device can do so. The copy is complete after wait_for_copies().
__device__ void copy(VECTOR* to, const VECTOR* from)
{
#if __CUDA_ARCH__ >= 800
    const unsigned shared = __cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(shared), "l"(from) : "memory");
#else
    *to = *from;
#endif
}

__device__ void wait_for_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Prefetch the cache line of an address into the L2 cache.
__device__ void announce(const VECTOR* address)
{
#if __CUDA_ARCH__
    asm volatile("prefetch.global.L2 [%0];" :: "l"(address));
#endif
}
