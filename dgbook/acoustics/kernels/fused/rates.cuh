// Where a thread's rates belong, without tensor cores.

using Rates = REAL[NODES][INLINE][1][4];

// A thread's nodes begin at a corner, NP of a thread that has none, and lie STRIDE
// apart; its elements lie APART. Of NODES it has SLOTS nodes at a time.
constexpr int STRIDE = LANES, SIDE = 1, APART = 1, SLOTS = INLINE;

__device__ unsigned corner(const Place& place) { return place.counts() ? place.lane : NP; }
