// The four fields of sound, p and three velocities, as they are stored.
//
// Before it is included: memory.cuh.

constexpr int WORDS = 4 / WIDTH;   // VECTORs that four numbers fill

// Load the four numbers of a node; in fp64, the second VECTOR is
// `further` VECTORs behind the first.
__device__ void fields(REAL (&to)[4], const VECTOR* from, int further)
{
#pragma unroll
    for (int k = 0; k < WORDS; ++k)
        ((VECTOR*)to)[k] = from[k * further];
}
