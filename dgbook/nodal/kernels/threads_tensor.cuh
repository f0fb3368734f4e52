// A thread's place with tensor cores.

constexpr int COLUMNS = round_up(NP, STEP), FACE = round_up(NFP, STEP);
constexpr int LANES = (NP + 8 * NODES - 1) / (8 * NODES) * 32;

// Lane 4 g + t of a warp has elements g and g + 8 of a product;
// `element` is the first of them. The warp's first tile is `tile`, and
// t says which nodes of each tile the lane has.
struct Place {
    unsigned lane, t, element, tile;
    __device__ Place()
    {
        const unsigned thread = threadIdx.x;
        lane = thread % 32;
        const unsigned g = lane / 4;
        t = lane % 4;
        element = thread / LANES * INLINE + g;
        tile = thread % LANES / 32 * NODES;
    }
};
