// Teams of threads of Bernstein-Bezier DG on tetrahedra.
//
// A team of LANES threads works on ELEMENTS elements and shares their
// points. TEAMS teams make a block. If a team is a warp, it never waits
// for other warps.
//
// Macros: ORDER, LANES, ELEMENTS, TEAMS, UNROLL (iterations of the last
// loop that are unrolled).

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
constexpr int THREADS = TEAMS * LANES;
constexpr int DEPTH = UNROLL;   // pragmas take no macro
constexpr unsigned GHOST = 24;   // the `way` of faces on the boundary
// Halves of a word.
constexpr unsigned LOW = 65535, HIGH = 16;

// Advance from point n of element e to a thread's next point, with SIZE
// points per element and COUNT elements.
template <int SIZE, int COUNT = ELEMENTS>
__device__ void advance(unsigned& e, unsigned& n)
{
    n += LANES % SIZE, e += LANES / SIZE;
    if (COUNT > 1 && n >= SIZE)
        n -= SIZE, ++e;
}

// Barrier of the threads of one team.
__device__ void meet()
{
    if (LANES == 32)
        __syncwarp();
    else
        __syncthreads();
}
