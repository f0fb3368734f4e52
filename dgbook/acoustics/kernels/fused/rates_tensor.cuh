// The nodes whose rates a thread has, with tensor cores.

// Numbers per node; an fp64 product makes two.
constexpr int PARTS = HALVES == 2 ? 4 : 6;
using Rates = REAL[NODES][HALVES][2][PARTS];

// A lane's columns of a matrix in a product.
struct alignas(PAIR * sizeof(REAL)) Columns { REAL x[PAIR]; };

// A thread's first node is corner(place). It has SIDE nodes of each
// tile; the tiles follow at a distance STRIDE, and its elements at a
// distance APART. In each of NODES steps it updates SLOTS nodes.
constexpr int STRIDE = 8, SIDE = 2, APART = 8, SLOTS = HALVES * SIDE;

__device__ unsigned corner(const Place& place)
{
    return place.tile * 8 + place.t;
}
