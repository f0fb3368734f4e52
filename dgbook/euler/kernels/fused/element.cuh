// What a thread has of its element.

constexpr int TILE = 32, WALL = 1;
constexpr int DEPTH = UNROLL, SIDES = SHARED ? 1 : 3;   // pragmas take no macro
constexpr int SIZE = 4 * NP, FAR_SIZE = 4 * NFP;
constexpr int APART = SHARED ? THREADS : 1;   // from one number of a state to the next
constexpr int FAR = SIZE * APART;             // where the nodes across an edge begin

// What was loaded from shared memory is loaded again when it is needed: the
// compiler would keep it, and spill sums to local memory instead.
__device__ void forget()
{
    if (SHARED)
        asm volatile("" ::: "memory");
}

// Of edge f of an element.
struct Normal {
    REAL x, y, half;   // of length 1; half: Fs / 2
    __device__ Normal(int f, REAL rx, REAL ry, REAL sx, REAL sy)
    {
        const REAL Nx = f == 0 ? rx + sx : f == 1 ? -rx : -sx;   // Fs n
        const REAL Ny = f == 0 ? ry + sy : f == 1 ? -ry : -sy;
        const REAL length = inverse_root(Nx * Nx + Ny * Ny);   // its inverse
        x = Nx * length, y = Ny * length;
        half = REAL(0.5) * (Nx * x + Ny * y);
    }
};
