// A thread's place without tensor cores.

constexpr int COLUMNS = round_up(NP, 2), FACE = round_up(NFP, 2);   // read two at a time
constexpr int LANES = (NP + NODES - 1) / NODES;

// Thread `lane` of a row has nodes lane + i LANES of the row's elements, from `element`
// on. What the last warp has too many repeats the last row, and writes nothing.
struct Place {
    unsigned row, lane, element;
    __device__ Place()
    {
        const unsigned thread = threadIdx.x;
        row = thread / LANES < ROWS ? thread / LANES : ROWS - 1;
        lane = thread % LANES;
        element = row * INLINE;
    }
    __device__ bool counts() const { return threadIdx.x < ROWS * LANES; }
};
