// The layout of a block's shared memory.

constexpr int EVEN_NP = round_up(NP, 2);
constexpr int SIZE = 6 * EVEN_NP;   // numbers of an element's state
constexpr int POINTS = 4 * FACE;    // points of an element's surface
constexpr int GEOMETRY = MATERIALS ? 22 : 18;   // numbers per element
constexpr int VECTORS = ELEMENTS * SIZE / WIDTH;   // of all states

// GROUP elements are contiguous. The distance between groups, in
// vectors, is such that the threads of a warp read from different
// banks: 4 modulo 8 for tensor cores, and otherwise odd.
constexpr int GROUP = TENSOR ? 1 : INLINE;
constexpr int GROUPS = ELEMENTS / GROUP;
constexpr int CHUNK = GROUP * SIZE / WIDTH;   // VECTORs of its states
__device__ constexpr int apart(int n)
{
    return TENSOR ? n + (12 - n % 8) % 8 : n | 1;
}
constexpr int STATE = apart(GROUP * 6 * COLUMNS / WIDTH);
constexpr int FLUX = apart(GROUP * 2 * POINTS / WIDTH);

struct Shared {
    VECTOR *state, *flux, *rate;   // rate: for du/dt
    REAL* shape;                   // GEOMETRY numbers per element
    unsigned* link;                // neighbors on each element's faces
    __device__ Shared(VECTOR* memory)
    {
        state = memory;
        flux = state + GROUPS * STATE;
        rate = KEEP ? flux : state;
        constexpr int LARGER = KEEP && STATE > FLUX ? STATE : FLUX;
        shape = (REAL*)(flux + GROUPS * LARGER);
        link = (unsigned*)(shape + ELEMENTS * GEOMETRY);
    }
};

// The place in shared memory of vector i of the block's states, which
// are contiguous in global memory.
__device__ VECTOR* spread(VECTOR* states, unsigned i)
{
    return states + i + i / CHUNK * (STATE - CHUNK);
}
