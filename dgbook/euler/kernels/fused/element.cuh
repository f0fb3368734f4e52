// A thread's element: the layout of its state, and the normals of its
// edges.

constexpr int TILE = 32, WALL = 1;
constexpr int DEPTH = UNROLL;   // pragmas take no macro
constexpr int SIDES = SHARED ? 1 : 3;
constexpr int SIZE = 4 * NP, FAR_SIZE = 4 * NFP;
constexpr int APART = SHARED ? THREADS : 1;   // distance of its numbers
constexpr int FAR = SIZE * APART;   // begin of the exterior states

// Make the compiler load again from shared memory when it needs a
// number. Otherwise it keeps what it has loaded, and spills sums to
// local memory.
__device__ void forget()
{
    if (SHARED)
        asm volatile("" ::: "memory");
}

// The unit normal of edge f of an element.
struct Normal {
    REAL x, y, half;   // half: Fs / 2
    __device__ Normal(int f, REAL rx, REAL ry, REAL sx, REAL sy)
    {
        const REAL Nx = f == 0 ? rx + sx : f == 1 ? -rx : -sx;   // Fs n
        const REAL Ny = f == 0 ? ry + sy : f == 1 ? -ry : -sy;
        const REAL one_over_Fs = inverse_root(Nx * Nx + Ny * Ny);
        x = Nx * one_over_Fs, y = Ny * one_over_Fs;
        half = REAL(0.5) * (Nx * x + Ny * y);
    }
};
