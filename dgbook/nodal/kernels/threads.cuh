// Which threads work on which nodes in the fused kernels of nodal
// methods.
//
// Without tensor cores, a row of LANES threads works on INLINE
// elements, and each thread on NODES nodes of each element. On tensor
// cores (TENSOR), a warp works on 8 HALVES = INLINE elements and on
// NODES tiles of 8 nodes. ROWS rows make a block.
//
// Before it is included: memory.cuh, the function partner that
// tensor.cuh needs, and the macros NP, NFP, TENSOR, ROWS, INLINE, NODES
// and UNROLL.

#if TENSOR
#include "gpu/tensor.cuh"
#include "nodal/kernels/threads_tensor.cuh"
#else
#include "nodal/kernels/threads_plain.cuh"
#endif

constexpr int ELEMENTS = ROWS * INLINE;
constexpr int THREADS = round_up(ROWS * LANES, 32);
constexpr int DEPTH = UNROLL;   // nvcc's pragma takes no macro
