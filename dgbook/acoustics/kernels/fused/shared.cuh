// What a block has in shared memory.

constexpr int SIZE = WORDS * NP;                // VECTORs of an element
constexpr int POINTS = 4 * NFP;                 // of the surface of an element
constexpr int GEOMETRY = 20;                    // numbers that describe an element
constexpr int DESCRIBED = GEOMETRY / WIDTH;     // VECTORs of them

// Elements begin STATE and FLUX vectors apart, so that the threads of a warp read
// from different banks.
__device__ constexpr int apart(int n, int rest) { return n + (8 + rest - n % 8) % 8; }
#if TENSOR
constexpr int STATE = WORDS == 1 ? COLUMNS | 1 : apart(WORDS * COLUMNS, 4);
constexpr int FLUX = apart(4 * FACE / WIDTH, 2);
#else
constexpr int STATE = WORDS * COLUMNS | 1, FLUX = 4 * FACE / WIDTH | 1;
#endif

struct Shared {
    VECTOR *state, *flux;
    REAL* shape;      // GEOMETRY numbers of each element
    unsigned* link;   // what each element meets on its four faces
    __device__ Shared(VECTOR* memory)
    {
        state = memory;
        flux = state + ELEMENTS * STATE;
        shape = (REAL*)(flux + ELEMENTS * FLUX);
        link = (unsigned*)(shape + ELEMENTS * GEOMETRY);
    }
};
