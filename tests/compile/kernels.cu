// Kernels that the tests of the compiler compile. REAL is float or double.

extern "C" __global__ void scale(const REAL* __restrict__ x, REAL* y, REAL factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = factor * x[i];
}

extern "C" __global__ void __launch_bounds__(128) reverse(const REAL* x /* of a block */, REAL* y)
{
    __shared__ REAL row[128];
    row[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
}

// Shared memory of a size that the launch says.
extern "C" __global__ void reverse_all(const REAL* x, REAL* y, int n)
{
    extern __shared__ REAL words[];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        words[i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        y[i] = words[n - 1 - i];
}

// 64 numbers that live at once, others in each thread.
extern "C" __global__ void juggle(const REAL* x, REAL* y, int turns)
{
    REAL held[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        held[i] = x[64 * threadIdx.x + i];
    for (int turn = 0; turn < turns; ++turn)
#pragma unroll
        for (int i = 0; i < 64; ++i)
            held[i] = held[i] * held[63 - i] + x[turn];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        y[64 * threadIdx.x + i] = held[i];
}

extern "C" __global__ void precise(const float* x, double* y)
{
    y[threadIdx.x] = x[threadIdx.x];
}

extern "C" __global__ void pointers(float** x)
{
    x[0][0] = 0;
}

