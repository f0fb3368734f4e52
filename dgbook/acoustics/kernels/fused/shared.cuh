// The layout of a block's shared memory.

constexpr int SIZE = WORDS * NP;              // VECTORs of an element
constexpr int POINTS = 4 * NFP;               // of an element's surface
constexpr int GEOMETRY = 20;                  // numbers per element
constexpr int DESCRIBED = GEOMETRY / WIDTH;   // VECTORs of them

// The states and fluxes of successive elements are STATE and FLUX
// vectors apart, so that the threads of a warp read from different
// banks.
__device__ constexpr int apart(int n, int rest)
{
    return n + (8 + rest - n % 8) % 8;
}
#if TENSOR
constexpr int STATE =
    WORDS == 1 ? COLUMNS | 1 : apart(WORDS * COLUMNS, 4);
constexpr int FLUX = apart(4 * FACE / WIDTH, 2);
#else
constexpr int STATE = WORDS * COLUMNS | 1, FLUX = 4 * FACE / WIDTH | 1;
#endif

struct Shared {
    VECTOR *state, *flux;
    REAL* shape;      // GEOMETRY numbers per element
    unsigned* link;   // neighbors on each element's faces
    __device__ Shared(VECTOR* memory)
    {
        state = memory;
        flux = state + ELEMENTS * STATE;
        shape = (REAL*)(flux + ELEMENTS * FLUX);
        link = (unsigned*)(shape + ELEMENTS * GEOMETRY);
    }
};
