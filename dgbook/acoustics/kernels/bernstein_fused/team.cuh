// What a team has in shared memory, and how its threads move through it.

constexpr int SIZE = NP * WORDS;                // VECTORs of the state of an element
constexpr int GEOMETRY = 20 / WIDTH;            // VECTORs per element
constexpr int ROUNDS = (ELEMENTS * NFP + LANES - 1) / LANES;   // face points per thread

// In quadruples of numbers: derivatives of degree N - 1, fluxes on the faces (of four
// faces at a point), the state, and the slices of the lift. Of numbers of 8 bytes the
// second halves lie behind all the first ones, so that neighboring threads read
// neighboring vectors.
constexpr int RATE = 0, FLUX = RATE + ELEMENTS * LOWER;
constexpr int STATE = FLUX + ELEMENTS * NFP, SLICE = STATE + ELEMENTS * NP;
constexpr int QUADS = SLICE + ELEMENTS * NP;
// Behind them, in VECTORs: geometry and links.
constexpr int SHAPE = WORDS * QUADS, LINK = SHAPE + ELEMENTS * GEOMETRY;
constexpr int TEAM = LINK + ELEMENTS;

// What a thread knows of its points of the faces, numbers for four faces at each.
struct FacePoints {
    unsigned element[ROUNDS], point[ROUNDS];   // point: NFP if there is none
    unsigned row[ROUNDS];                      // of the face, and its length
    unsigned link[ROUNDS][4];                  // what is met there
    alignas(16) REAL far[ROUNDS][4][4];        // the neighbor's fields
    alignas(16) REAL lifted[ROUNDS][4];        // the flux, then its slices
    alignas(16) REAL square[ROUNDS][4];        // factors of L_0; of the flux
};

// A quadruple of shared memory.
__device__ void load(REAL (&to)[4], const VECTOR* from) { fields(to, from, QUADS); }

__device__ void store(VECTOR* to, const REAL (&from)[4])
{
#pragma unroll
    for (int i = 0; i < WORDS; ++i)
        to[i * QUADS] = ((const VECTOR*)from)[i];
}

// Where a position in a table, which counts bytes, is in shared memory.
__device__ const VECTOR* at(const VECTOR* array, unsigned position)
{
    return (const VECTOR*)((const char*)array + position);
}
