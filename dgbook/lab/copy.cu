// y = x, by loads and stores of 16 bytes: one float4 per thread and
// access.
//
// A thread has four loads in flight before its first store, so that it
// hides part of the latency itself. `vectors` counts float4s, a quarter
// of the words; a block of n threads copies 4 n of them.

constexpr int LOADS = 4;

extern "C" __global__ void copy(const float4* x, float4* y,
                                long long vectors)
{
    float4 held[LOADS];
    // Neighboring threads touch neighboring vectors in each access.
    long long first =
        (long long)blockIdx.x * blockDim.x * LOADS + threadIdx.x;
#pragma unroll
    for (int i = 0; i < LOADS; ++i)
        if (first + i * blockDim.x < vectors)
            held[i] = x[first + i * blockDim.x];
#pragma unroll
    for (int i = 0; i < LOADS; ++i)
        if (first + i * blockDim.x < vectors)
            y[first + i * blockDim.x] = held[i];
}
