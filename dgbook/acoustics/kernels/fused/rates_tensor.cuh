// Where a thread's rates belong, with tensor cores.

constexpr int PARTS = HALVES == 2 ? 4 : 6;      // numbers per node: an fp64 product makes two
using Rates = REAL[NODES][HALVES][2][PARTS];

// A lane's columns of a matrix in a product.
struct alignas(PAIR * sizeof(REAL)) Columns { REAL x[PAIR]; };

// A thread's nodes begin at a corner and lie STRIDE apart, two (SIDE) in each tile; its
// elements lie APART. Of NODES it has SLOTS nodes at a time.
constexpr int STRIDE = 8, SIDE = 2, APART = 8, SLOTS = HALVES * SIDE;

__device__ unsigned corner(const Place& place) { return place.tile * 8 + place.t; }
