// y = x, by loads and stores of 16 bytes: four words a thread and access.
//
// Four loads are under way before the first store, so that a thread hides
// part of the latency itself. `vectors` counts float4s: a quarter of the words.

constexpr int LOADS = 4;

extern "C" __global__ void copy(const float4* x, float4* y, long long vectors)
{
    // A block's threads touch neighbouring vectors: each access is dense.
    long long first = (long long)blockIdx.x * blockDim.x * LOADS + threadIdx.x;
    if (first + (LOADS - 1) * blockDim.x < vectors) {
        float4 held[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; ++i)
            held[i] = x[first + i * blockDim.x];
#pragma unroll
        for (int i = 0; i < LOADS; ++i)
            y[first + i * blockDim.x] = held[i];
    } else {
        for (long long i = first; i < vectors; i += blockDim.x)
            if (i < first + LOADS * blockDim.x)
                y[i] = x[i];
    }
}
