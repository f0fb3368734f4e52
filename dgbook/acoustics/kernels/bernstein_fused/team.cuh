// The layout of a team's shared memory, and how its threads access it.

__device__ constexpr int triangle(int n)
{
    return (n + 1) * (n + 2) / 2;
}

__device__ constexpr int tetrahedron(int n)
{
    return (n + 1) * (n + 2) * (n + 3) / 6;
}

constexpr int NP = tetrahedron(ORDER), NFP = triangle(ORDER);
constexpr int LOWER = tetrahedron(ORDER - 1);   // degree N - 1
constexpr int SIZE = NP * WORDS;       // VECTORs of an element's state
constexpr int GEOMETRY = 20 / WIDTH;   // VECTORs per element
constexpr int THREADS = TEAMS * LANES;
constexpr int DEPTH = UNROLL;   // pragmas take no macro
// Face points per thread.
constexpr int ROUNDS = (ELEMENTS * NFP + LANES - 1) / LANES;
// Halves of a word.
constexpr unsigned GHOST = 24, LOW = 65535, HIGH = 16;

// In quadruples of numbers: derivatives of degree N - 1, fluxes (at a
// point, on four faces), the state, and the slices of the lift. In
// fp64, the second halves of all quadruples lie behind all first ones,
// so that neighboring threads read neighboring vectors.
constexpr int RATE = 0, FLUX = RATE + ELEMENTS * LOWER;
constexpr int STATE = FLUX + ELEMENTS * NFP;
constexpr int SLICE = STATE + ELEMENTS * NP;
constexpr int QUADS = SLICE + ELEMENTS * NP;
// Behind them, in VECTORs: geometry and links.
constexpr int SHAPE = WORDS * QUADS, LINK = SHAPE + ELEMENTS * GEOMETRY;
constexpr int TEAM = LINK + ELEMENTS;

// A thread's points of the faces, with numbers for four faces at each
// point.
struct FacePoints {
    unsigned element[ROUNDS];
    unsigned point[ROUNDS];               // NFP if there is none
    unsigned row[ROUNDS];                 // its row's number and length
    unsigned link[ROUNDS][4];             // the neighbors
    alignas(16) REAL far[ROUNDS][4][4];   // the neighbors' fields
    alignas(16) REAL lifted[ROUNDS][4];   // the flux, then its slices
    alignas(16) REAL square[ROUNDS][4];   // factors of L_0; of the flux
};

// Load and store a quadruple of shared memory.
__device__ void load(REAL (&to)[4], const VECTOR* from)
{
    fields(to, from, QUADS);
}

__device__ void store(VECTOR* to, const REAL (&from)[4])
{
#pragma unroll
    for (int i = 0; i < WORDS; ++i)
        to[i * QUADS] = ((const VECTOR*)from)[i];
}

// The place in shared memory of a position from a table, which counts
// bytes.
__device__ const VECTOR* at(const VECTOR* array, unsigned position)
{
    return (const VECTOR*)((const char*)array + position);
}

// Advance from point n of element e to a thread's next point, with SIZE
// points per element.
template <int SIZE> __device__ void advance(unsigned& e, unsigned& n)
{
    n += LANES % SIZE, e += LANES / SIZE;
    if (ELEMENTS > 1 && n >= SIZE)
        n -= SIZE, ++e;
}

__device__ void meet()
{
    if (LANES == 32)
        __syncwarp();
    else
        __syncthreads();
}
