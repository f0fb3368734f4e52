// A thread's place without tensor cores.

// Columns are read two at a time.
constexpr int COLUMNS = round_up(NP, 2), FACE = round_up(NFP, 2);
constexpr int LANES = (NP + NODES - 1) / NODES;

// Thread `lane` of a row has the nodes lane + i LANES of the row's
// elements, the first of which is `element`. Spare threads of the last
// warp repeat the last row and write nothing.
struct Place {
    unsigned row, lane, element;
    __device__ Place()
    {
        const unsigned thread = threadIdx.x;
        row = thread / LANES < ROWS ? thread / LANES : ROWS - 1;
        lane = thread % LANES;
        element = row * INLINE;
    }
    __device__ bool counts() const
    {
        return threadIdx.x < ROWS * LANES;
    }
};
