// Read an array again and again: how fast what holds it delivers.
//
// In each round all threads of the grid together read all of x once.

constexpr int LOADS = 4;   // in flight per thread

extern "C" __global__ void read_again(const float* x, int rounds,
                                      int vectors, float* out)
{
    const int threads = gridDim.x * blockDim.x;
    const int me = blockIdx.x * blockDim.x + threadIdx.x;
    const float4* quads = (const float4*)x;
    float total = 0;
    for (int round = 0; round < rounds; ++round)
        for (int first = me; first < vectors;
             first += LOADS * threads) {
            float4 held[LOADS] = {};
#pragma unroll
            for (int i = 0; i < LOADS; ++i)
                // __ldcg reads from the L2, never from the L1.
                if (first + i * threads < vectors)
                    held[i] = __ldcg(quads + first + i * threads);
#pragma unroll
            for (int i = 0; i < LOADS; ++i)
                total += held[i].x + held[i].y + held[i].z + held[i].w;
        }
    out[me] = total;
}
