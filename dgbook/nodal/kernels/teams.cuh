// Teams of threads that work on a few tetrahedra of Bernstein-Bezier DG together.
//
// A team of LANES threads works on ELEMENTS elements, whose points are dealt to
// its threads; TEAMS teams make a block. Where a team is a warp nobody waits for
// other warps.
//
// Macros: ORDER, LANES, ELEMENTS, TEAMS, UNROLL (turns of the last loop that are
// unrolled).

__device__ constexpr int triangle(int n) { return (n + 1) * (n + 2) / 2; }
__device__ constexpr int tetrahedron(int n) { return (n + 1) * (n + 2) * (n + 3) / 6; }

constexpr int NP = tetrahedron(ORDER), NFP = triangle(ORDER);
constexpr int LOWER = tetrahedron(ORDER - 1);   // points of degree N - 1
constexpr int THREADS = TEAMS * LANES, DEPTH = UNROLL;   // pragmas take no macro
constexpr unsigned GHOST = 24, LOW = 65535, HIGH = 16;   // halves of a word

// From a thread's work on point n of element e to its next one, of SIZE per element
// and COUNT elements.
template <int SIZE, int COUNT = ELEMENTS>
__device__ void advance(unsigned& e, unsigned& n)
{
    n += LANES % SIZE, e += LANES / SIZE;
    if (COUNT > 1 && n >= SIZE)
        n -= SIZE, ++e;
}

__device__ void meet()
{
    if (LANES == 32)
        __syncwarp();
    else
        __syncthreads();
}
