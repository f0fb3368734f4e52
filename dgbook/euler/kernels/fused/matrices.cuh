// The matrices, from macros, and the memory that holds them.

constexpr int NODES = (NP + PASSES - 1) / PASSES;   // nodes per pass
constexpr int ROWS = PASSES * NODES;   // those from NP on are zero
constexpr int COLUMNS = (ROWS + 3) / 4 * 4;   // aligns rows to 16 bytes

struct alignas(16) Matrices {
    REAL interpolation[NQ][COLUMNS];   // phi_i at point q
    REAL projection[NQ][COLUMNS][2];   // M^-1 w_q grad phi_i
    REAL lift[3][NE][COLUMNS];         // -M^-1 w_q phi_i
    REAL trace[NE][NFP];               // phi_j at point q of an edge
};
#if COPIED
__device__ const Matrices given
#else
__constant__ const Matrices given
#endif
    = {INTERPOLATION, PROJECTION, LIFT, TRACE};
__constant__ REAL nodal[NFP][NE] = NODAL;   // the inverse of trace
__constant__ constexpr int edge_nodes[3][NFP] = EDGE_NODES;

// All threads of a block copy the matrices to shared memory.
__device__ void copy_to(Matrices& matrices)
{
    constexpr size_t VECTORS = sizeof(Matrices) / sizeof(uint4);
    for (int i = threadIdx.x; i < VECTORS; i += THREADS)
        ((uint4*)&matrices)[i] = ((const uint4*)&given)[i];
}
