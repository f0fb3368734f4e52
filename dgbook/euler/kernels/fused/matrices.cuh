// The matrices, made by macros, and where they are.

constexpr int NODES = (NP + PASSES - 1) / PASSES;   // that a pass sums up
constexpr int ROWS = PASSES * NODES;   // of the matrices; above NP they are zero
constexpr int COLUMNS = (ROWS + 3) / 4 * 4;   // rows begin at 16 bytes

struct alignas(16) Matrices {
    REAL interpolation[NQ][COLUMNS];   // phi_i at point q
    REAL projection[NQ][COLUMNS][2];   // M^-1 w_q grad phi_i
    REAL lift[3][NE][COLUMNS];         // -M^-1 w_q phi_i
    REAL trace[NE][NFP];               // phi_j at point q of an edge
};
#if COPIED
__device__ const Matrices given = {INTERPOLATION, PROJECTION, LIFT, TRACE};
#else
__constant__ const Matrices given = {INTERPOLATION, PROJECTION, LIFT, TRACE};
#endif
__constant__ REAL nodal[NFP][NE] = NODAL;   // the inverse of trace
__constant__ constexpr int edge_nodes[3][NFP] = EDGE_NODES;

// To shared memory, by all threads of a block.
__device__ void copy_to(Matrices& matrices)
{
    for (int i = threadIdx.x; i < sizeof(Matrices) / sizeof(uint4); i += THREADS)
        ((uint4*)&matrices)[i] = ((const uint4*)&given)[i];
}
