// Chains of products on tensor cores, with operands and sums in
// registers: the rate of these units alone.
//
// Macros: REAL, VECTOR (16 bytes of them), and NODES, the number of
// sums of 16 x 8 numbers that each warp keeps. The products are those
// of the wave kernels: in fp32 three in TF32, of operands split in two;
// in fp64 of two fields at once.

#include "gpu/memory.cuh"

__device__ constexpr int partner(int f, int fields)
{
    return (f + 1) % fields;
}

#include "gpu/tensor.cuh"

constexpr int FIELDS = sizeof(REAL) / 4;   // per product
constexpr int LINKS = 16;   // products of a chain per round

// Each lane's numbers are contiguous: 2 PAIR of the rows, NODES PAIR of
// the columns. Lane 4 g + t holds entries t and t + 4 of rows g and
// g + 8, and the same entries of column g; in fp64 it holds entry t of
// both fields' rows g, and of column g.
extern "C" __global__ void products(const REAL* a, const REAL* b,
                                    int rounds, REAL* out)
{
    const int lane = threadIdx.x % 32;
    const Operand<2> rows(a + 2 * PAIR * lane);
    const Operand<NODES> columns(b + NODES * PAIR * lane);
    REAL sum[NODES][HALVES][2][FIELDS] = {};
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int link = 0; link < LINKS; ++link)
            multiply(sum, 0, rows, columns);

    REAL total = 0;
#pragma unroll
    for (int i = 0; i < NODES * HALVES * 2 * FIELDS; ++i)
        total += (&sum[0][0][0][0])[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}
