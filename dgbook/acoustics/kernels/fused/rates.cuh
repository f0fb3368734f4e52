// The nodes whose rates a thread has, without tensor cores.

using Rates = REAL[NODES][INLINE][1][4];

// A thread's first node is corner(place), which is NP for a thread
// without nodes; the next ones follow at a distance STRIDE, and its
// elements at a distance APART. In each of NODES steps it updates SLOTS
// nodes.
constexpr int STRIDE = LANES, SIDE = 1, APART = 1, SLOTS = INLINE;

__device__ unsigned corner(const Place& place)
{
    return place.counts() ? place.lane : NP;
}
