// What a block has in shared memory.

constexpr int EVEN_NP = round_up(NP, 2);
constexpr int SIZE = 6 * EVEN_NP;               // of the state of an element
constexpr int POINTS = 4 * FACE;                // of the surface of an element
constexpr int GEOMETRY = MATERIALS ? 22 : 18;   // numbers per element

// GROUP elements are contiguous; groups begin so many vectors apart that the
// threads of a warp read from different banks: 4 modulo 8 for tensor cores, else odd.
constexpr int GROUP = TENSOR ? 1 : INLINE;
constexpr int GROUPS = ELEMENTS / GROUP;
constexpr int CHUNK = GROUP * SIZE / WIDTH;     // VECTORs of a group's states
__device__ constexpr int apart(int n) { return TENSOR ? n + (12 - n % 8) % 8 : n | 1; }
constexpr int STATE = apart(GROUP * 6 * COLUMNS / WIDTH);
constexpr int FLUX = apart(GROUP * 2 * POINTS / WIDTH);

struct Shared {
    VECTOR *state, *flux, *rate;   // rate: where du/dt will be
    REAL* shape;                   // GEOMETRY numbers of each element, see flux.cuh
    unsigned* link;                // what each element meets on its four faces
    __device__ Shared(VECTOR* memory)
    {
        state = memory;
        flux = state + GROUPS * STATE;
        rate = KEEP ? flux : state;
        shape = (REAL*)(flux + GROUPS * (KEEP && STATE > FLUX ? STATE : FLUX));
        link = (unsigned*)(shape + ELEMENTS * GEOMETRY);
    }
};

// Where vector i of the block's states, which are contiguous elsewhere, stands among states here.
__device__ VECTOR* spread(VECTOR* states, unsigned i)
{
    return states + i + i / CHUNK * (STATE - CHUNK);
}
