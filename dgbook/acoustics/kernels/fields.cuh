// The four fields of sound, p and three velocities, as they are stored.
//
// Before it is included: memory.cuh.

constexpr int WORDS = 4 / WIDTH;                // VECTORs that four numbers fill

// The four numbers of a node; the second VECTOR lies so many further on.
__device__ void fields(REAL (&to)[4], const VECTOR* from, int further)
{
#pragma unroll
    for (int k = 0; k < WORDS; ++k)
        ((VECTOR*)to)[k] = from[k * further];
}
