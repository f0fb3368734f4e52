// One Runge-Kutta stage of upwind DG for Maxwell's equations in one pass:
// res = a res + dt du/dt (res is not read if a = 0), new = u + b res (not
// written if b = 0).
//
// The state holds, node by node, six covariant components: x_i . E and
// x_i . (Z H), where x_1, x_2, x_3 are the columns of dx/dr. Then a curl takes
// six products with an entry of D, not nine; the tangential fields of a
// neighbor are mine up to signs and sums; and two numbers a face node are
// lifted, not six.
//
// Without TENSOR, a row of LANES threads works on INLINE elements and a thread
// on NODES nodes of each. With it, a warp works on 8 HALVES = INLINE elements
// and NODES tiles of 8 nodes, and the tensor cores multiply. ROWS rows make a
// block, of which a multiprocessor shall hold BLOCKS; some of the plans that
// win then keep some registers in local memory.
//
// Macros: REAL, COUPLE (two of them), VECTOR (16 bytes of them), NP, NFP, the
// above, UNROLL, MATERIALS (the impedance varies), KEEP (u stays in shared
// memory, and du/dt gets a place of its own).

// In fp64 tensor cores take a component of E and one of H together.
__device__ constexpr int partner(int f, int components)
{
    return (f + components / 2) % components;
}

#include "tensor.cuh"

constexpr int GEOMETRY = MATERIALS ? 22 : 18;   // numbers an element
constexpr int EVEN_NP = round_up(NP, 2);
constexpr int SIZE = 6 * EVEN_NP;               // of the state of an element
constexpr int ELEMENTS = ROWS * INLINE;
constexpr int DEPTH = UNROLL;                   // nvcc's pragma takes no macro
#if TENSOR
constexpr int COLUMNS = round_up(NP, STEP), FACE = round_up(NFP, STEP);
constexpr int LANES = (NP + 8 * NODES - 1) / (8 * NODES) * 32;
constexpr int GROUP = 1;
__device__ constexpr int apart(int n) { return n + (12 - n % 8) % 8; }   // 4 modulo 8
#else
constexpr int COLUMNS = EVEN_NP, FACE = round_up(NFP, 2);
constexpr int LANES = (NP + NODES - 1) / NODES;
constexpr int GROUP = INLINE;
__device__ constexpr int apart(int n) { return n | 1; }
#endif
constexpr int THREADS = round_up(ROWS * LANES, 32);
constexpr int POINTS = 4 * FACE;                // of the surface of an element
// GROUP elements are contiguous; groups begin so many vectors apart that the
// threads of a warp read from different banks.
constexpr int CHUNK = GROUP * SIZE / WIDTH;
constexpr int STATE = apart(GROUP * 6 * COLUMNS / WIDTH);
constexpr int FLUX = apart(GROUP * 2 * POINTS / WIDTH);
constexpr int GROUPS = ELEMENTS / GROUP;

// Two lifted numbers of face f, times dual tangents of that face, are added to
// the contravariant components of J du/dt; f is known to the compiler.
__device__ void add_face(REAL (&c)[6], int f, const REAL* turn, REAL A, REAL B)
{
    const int s = f < 2 ? 1 : 0, t = f < 3 ? 2 : 1;
    const REAL E1 = f % 2 ? B : -B, E2 = f % 2 ? -A : A;
    const REAL H1 = turn[2] * A - turn[1] * B, H2 = turn[0] * B - turn[1] * A;
    c[s] += E1, c[t] += E2, c[3 + s] += H1, c[3 + t] += H2;
    if (f == 0)
        c[0] -= E1 + E2, c[3] -= H1 + H2;
}

// Contravariant components of J du/dt to covariant ones of du/dt.
__device__ void lower(REAL* to, const REAL (&c)[6], const REAL* m)
{
#pragma unroll
    for (int f = 0; f < 6; f += 3) {
        to[f] = m[0] * c[f] + m[1] * c[f + 1] + m[2] * c[f + 2];
        to[f + 1] = m[1] * c[f] + m[3] * c[f + 1] + m[4] * c[f + 2];
        to[f + 2] = m[2] * c[f] + m[4] * c[f + 1] + m[5] * c[f + 2];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) fused(
    const REAL* __restrict__ u, const REAL* __restrict__ data,
    const unsigned* __restrict__ links, const unsigned* __restrict__ opposite,
    const REAL* __restrict__ tangents, const unsigned* __restrict__ face_nodes,
    const REAL* __restrict__ geometry, const REAL* __restrict__ boundary,
    const REAL* __restrict__ derivative, const REAL* __restrict__ lift,
    REAL* __restrict__ res, REAL* __restrict__ newer, unsigned faces,
    REAL a, REAL b, REAL dt)
{
    extern __shared__ VECTOR memory[];
    VECTOR* state = memory;
    VECTOR* flux = state + GROUPS * STATE;
    VECTOR* rate = KEEP ? flux : state;   // where du/dt will be
    REAL* shape = (REAL*)(flux + GROUPS * (KEEP && STATE > FLUX ? STATE : FLUX));
    unsigned* link = (unsigned*)(shape + ELEMENTS * GEOMETRY);
    const unsigned thread = threadIdx.x, first = blockIdx.x * ELEMENTS;
    const VECTOR* own = (const VECTOR*)u + (size_t)first * (SIZE / WIDTH);

    // 1. Fetch the states, which are contiguous, past the registers where the
    // device can; tell the L2 cache that res will be wanted.
#pragma unroll 4
    for (unsigned i = thread; i < ELEMENTS * SIZE / WIDTH; i += THREADS) {
        VECTOR* to = state + i + i / CHUNK * (STATE - CHUNK);
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                     :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(own + i) : "memory");
#else
        *to = own[i];
#endif
    }
    for (unsigned i = thread * 8; a != 0 && i < ELEMENTS * SIZE / WIDTH; i += THREADS * 8)
        asm volatile("prefetch.global.L2 [%0];"
                     :: "l"((VECTOR*)res + (size_t)first * (SIZE / WIDTH) + i));
    constexpr unsigned REST = STATE > CHUNK ? STATE - CHUNK : 1;
    if constexpr (STATE > CHUNK)
        for (unsigned i = thread; i < GROUPS * REST; i += THREADS)
            state[i / REST * STATE + CHUNK + i % REST] = VECTOR();   // zero times D is zero
    for (unsigned i = thread; i < ELEMENTS * 4; i += THREADS)
        link[i] = links[first * 4 + i];
    for (unsigned i = thread; i < ELEMENTS * GEOMETRY; i += THREADS)
        shape[i] = geometry[(size_t)first * GEOMETRY + i];
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();

    // 2. Two numbers a face node: Z^+ [H] - n x [E], along the two tangents of
    // the face, times Z^- / (Z^- + Z^+).
#pragma unroll 2
    for (unsigned p = thread; p < ELEMENTS * POINTS; p += THREADS) {
        const unsigned e = p / POINTS, f = p / FACE % 4, i = p % FACE;
        COUPLE both = {};
        if (i < NFP) {
            const unsigned way = link[e * 4 + f] % 32, neighbor = link[e * 4 + f] / 32;
            const REAL* v = (const REAL*)(state + e / GROUP * STATE) + e % GROUP * SIZE
                          + 6 * face_nodes[f * NFP + i];
            const REAL e1 = f == 0 ? v[1] - v[0] : v[f == 1];
            const REAL e2 = f == 0 ? v[2] - v[0] : v[f == 3 ? 1 : 2];
            const REAL h1 = f == 0 ? v[4] - v[3] : v[3 + (f == 1)];
            const REAL h2 = f == 0 ? v[5] - v[3] : v[f == 3 ? 4 : 5];
            REAL E1, E2, H1, H2;
            if (way < 24) {
                alignas(16) REAL t[8];
                COUPLE w[3];
                const size_t node = (size_t)neighbor * EVEN_NP + opposite[way * NFP + i];
#pragma unroll
                for (int j = 0; j < 3; ++j)
                    w[j] = ((const COUPLE*)u)[node * 3 + j];
                read(t, tangents + way * 8);
                E1 = t[0] * w[0].x + t[1] * w[0].y + t[2] * w[1].x;
                E2 = t[4] * w[0].x + t[5] * w[0].y + t[6] * w[1].x;
                H1 = t[0] * w[1].y + t[1] * w[2].x + t[2] * w[2].y;
                H2 = t[4] * w[1].y + t[5] * w[2].x + t[6] * w[2].y;
            } else {   // the boundary: u^+ = M u^- + g
                const REAL* m = boundary + neighbor * 9;
                E1 = m[0] * e1, E2 = m[0] * e2, H1 = m[1] * h1, H2 = m[1] * h2;
                for (int d = 0; d < 3; ++d) {
                    const REAL* g = data + ((size_t)d * faces + neighbor) * NFP + i;
                    const REAL E = g[0], H = m[8] * g[(size_t)3 * faces * NFP];
                    E1 += m[2 + d] * E, E2 += m[5 + d] * E;
                    H1 += m[2 + d] * H, H2 += m[5 + d] * H;
                }
            }
            const REAL* turn = shape + e * GEOMETRY + 6 + f * 3;
            const REAL tau = MATERIALS ? shape[e * GEOMETRY + 18 + f] : REAL(0.5);
            const REAL sign = f % 2 ? -tau : tau;   // of t_1 x t_2, outward or inward
            E1 -= e1, E2 -= e2;
            both.x = tau * H1 - (1 - tau) * h1 + sign * (turn[0] * E2 - turn[1] * E1);
            both.y = tau * H2 - (1 - tau) * h2 + sign * (turn[1] * E2 - turn[2] * E1);
        }
        ((COUPLE*)(flux + e / GROUP * FLUX))[e % GROUP * POINTS + p % POINTS] = both;
    }
    __syncthreads();

#if TENSOR
    // 3. J curl H and -J curl E: lane 4 g + t has elements g and g + 8 and, of
    // tile i, nodes 2 t and 2 t + 1.
    const unsigned lane = thread % 32, g = lane / 4, t = lane % 4;
    const unsigned e = thread / LANES * INLINE + g, tile = thread % LANES / 32 * NODES;
    REAL c[NODES][HALVES][2][6] = {};
    const VECTOR* s = state + e * STATE + t * PAIR * 6 / WIDTH;
    const REAL* d = derivative + (tile * (COLUMNS / STEP) * 3 * 32 + lane) * PAIR;
#pragma unroll DEPTH
    for (int m = 0; m < COLUMNS; m += STEP, s += STEP * 6 / WIDTH, d += 3 * 32 * PAIR) {
        alignas(16) REAL v[HALVES][PAIR * 6], D[3][NODES][PAIR];
#pragma unroll
        for (int x = 0; x < 3; ++x)
#pragma unroll
            for (int i = 0; i < NODES * PAIR; ++i)
                D[x][i / PAIR][i % PAIR] =
                    d[(i / PAIR * (COLUMNS / STEP) * 3 + x) * 32 * PAIR + i % PAIR];
#pragma unroll
        for (int h = 0; h < HALVES; ++h)
            read(v[h], s + h * 8 * STATE);
        // Products are only added: c[1], c[3], c[5] get the wrong sign, until below.
        const Operand<NODES> D1(D[0][0]), D2(D[1][0]), D3(D[2][0]);
#pragma unroll
        for (int f = 0; f < 3 * HALVES; f += 3) {   // E and H, in fp64 together
            constexpr int next = 3 * HALVES;
            const Operand<2> x(v[0] + f, next);
            add_product(c, 4 - f, -1, x, D3), add_product(c, 5 - f, -1, x, D2);
            const Operand<2> y(v[0] + f + 1, next);
            add_product(c, 3 - f, -1, y, D3), add_product(c, 5 - f, 1, y, D1);
            const Operand<2> z(v[0] + f + 2, next);
            add_product(c, 3 - f, 1, z, D2), add_product(c, 4 - f, 1, z, D1);
        }
    }
#pragma unroll
    for (int i = 0; i < NODES * HALVES * 2; ++i) {
        REAL(&w)[6] = c[i / 2 / HALVES][i / 2 % HALVES][i % 2];
        w[1] = -w[1], w[3] = -w[3], w[5] = -w[5];
    }

    // 4. Lift face by face.
    const VECTOR* q = flux + e * FLUX + t * PAIR * 2 / WIDTH;
    const REAL* l = lift + (tile * 4 * (FACE / STEP) * 32 + lane) * PAIR;
#pragma unroll
    for (int f = 0; f < 4; ++f) {
        REAL lifted[NODES][HALVES][2][2] = {};
#pragma unroll DEPTH
        for (int j = 0; j < FACE; j += STEP, q += STEP * 2 / WIDTH, l += 32 * PAIR) {
            alignas(16) REAL v[HALVES][PAIR * 2], L[NODES][PAIR];
#pragma unroll
            for (int i = 0; i < NODES * PAIR; ++i)
                L[i / PAIR][i % PAIR] = l[i / PAIR * 4 * (FACE / STEP) * 32 * PAIR + i % PAIR];
#pragma unroll
            for (int h = 0; h < HALVES; ++h)
                read(v[h], q + h * 8 * FLUX);
            const Operand<NODES> matrix(L[0]);
#pragma unroll
            for (int k = 0; k < HALVES; ++k)
                multiply(lifted, k, Operand<2>(v[0] + k, HALVES), matrix);
        }
#pragma unroll
        for (int i = 0; i < NODES * HALVES * 2; ++i) {
            const int h = i / 2 % HALVES;
            const REAL(&w)[2] = lifted[i / 2 / HALVES][h][i % 2];
            add_face(c[i / 2 / HALVES][h][i % 2], f, shape + (e + h * 8) * GEOMETRY + 6 + f * 3,
                     w[0], w[1]);
        }
    }
    __syncthreads();

    // 5. Put du/dt where the update finds it.
#pragma unroll
    for (int i = 0; i < NODES * HALVES; ++i) {
        const int h = i % HALVES, n = (tile + i / HALVES) * 8 + 2 * t;
        alignas(16) REAL w[12];
        lower(w, c[i / HALVES][h][0], shape + (e + h * 8) * GEOMETRY);
        lower(w + 6, c[i / HALVES][h][1], shape + (e + h * 8) * GEOMETRY);
        if (n < NP)
#pragma unroll
            for (int k = 0; k < 12 / WIDTH; ++k)
                rate[(e + h * 8) * STATE + n * 6 / WIDTH + k] = ((VECTOR*)w)[k];
    }
#else
    // 3. J curl H and -J curl E at NODES nodes, lane + i LANES, of INLINE elements.
    const unsigned row = thread / LANES < ROWS ? thread / LANES : ROWS - 1;
    const unsigned lane = thread % LANES;
    REAL c[NODES][INLINE][6] = {};
    const REAL* s = (const REAL*)(state + row * STATE);
    const COUPLE* d = (const COUPLE*)derivative + lane;
#pragma unroll DEPTH
    for (int m = 0; m < COLUMNS; m += 2, s += 12, d += NODES * 3 * LANES) {
        COUPLE D[NODES][3];
#pragma unroll
        for (int i = 0; i < NODES * 3; ++i)
            D[i / 3][i % 3] = d[i * LANES];
#pragma unroll
        for (int e = 0; e < INLINE; ++e) {
            alignas(16) REAL v[12];
            read(v, s + e * SIZE);
#pragma unroll
            for (int i = 0; i < NODES; ++i)
#pragma unroll
                for (int x = 0; x < 3; ++x) {
                    const int y = (x + 1) % 3, z = (x + 2) % 3;
                    c[i][e][x] += D[i][y].x * v[3 + z];
                    c[i][e][x] -= D[i][z].x * v[3 + y];
                    c[i][e][3 + x] -= D[i][y].x * v[z];
                    c[i][e][3 + x] += D[i][z].x * v[y];
                    c[i][e][x] += D[i][y].y * v[9 + z];
                    c[i][e][x] -= D[i][z].y * v[9 + y];
                    c[i][e][3 + x] -= D[i][y].y * v[6 + z];
                    c[i][e][3 + x] += D[i][z].y * v[6 + y];
                }
        }
    }

    // 4. Lift face by face.
    const REAL* q = (const REAL*)(flux + row * FLUX);
    const COUPLE* l = (const COUPLE*)lift + lane;
#pragma unroll
    for (int f = 0; f < 4; ++f) {
        REAL lifted[NODES][INLINE][2] = {};
#pragma unroll DEPTH
        for (int j = 0; j < FACE; j += 2, q += 4, l += NODES * LANES) {
            COUPLE L[NODES];
#pragma unroll
            for (int i = 0; i < NODES; ++i)
                L[i] = l[i * LANES];
#pragma unroll
            for (int e = 0; e < INLINE; ++e) {
                alignas(16) REAL v[4];
                read(v, q + e * POINTS * 2);
#pragma unroll
                for (int i = 0; i < NODES; ++i) {
                    lifted[i][e][0] += L[i].x * v[0] + L[i].y * v[2];
                    lifted[i][e][1] += L[i].x * v[1] + L[i].y * v[3];
                }
            }
        }
#pragma unroll
        for (int i = 0; i < NODES * INLINE; ++i) {
            const int e = i % INLINE;
            add_face(c[i / INLINE][e], f, shape + (row * INLINE + e) * GEOMETRY + 6 + f * 3,
                     lifted[i / INLINE][e][0], lifted[i / INLINE][e][1]);
        }
    }
    __syncthreads();

    // 5. Put du/dt where the update finds it.
#pragma unroll
    for (int i = 0; i < NODES * INLINE; ++i) {
        const unsigned e = i % INLINE, n = lane + i / INLINE * LANES;
        if (thread < ROWS * LANES && n < NP)
            lower((REAL*)(rate + row * STATE) + e * SIZE + n * 6, c[i / INLINE][e],
                  shape + (row * INLINE + e) * GEOMETRY);
    }
#endif
    __syncthreads();

    // 6. The update, once through the block's contiguous memory.
    VECTOR* kept = (VECTOR*)res + (size_t)first * (SIZE / WIDTH);
    VECTOR* next = (VECTOR*)newer + (size_t)first * (SIZE / WIDTH);
#pragma unroll 4
    for (unsigned i = thread; i < ELEMENTS * SIZE / WIDTH; i += THREADS) {
        alignas(16) REAL r[WIDTH], w[WIDTH], v[WIDTH];
        const unsigned at = i + i / CHUNK * (STATE - CHUNK);
        read(w, rate + at);
        read(v, KEEP ? state + at : own + i);
        if (a != 0)
            *(VECTOR*)r = __ldcs(kept + i);   // not wanted again: leave the cache to u
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            r[j] = a != 0 ? a * r[j] + dt * w[j] : dt * w[j];
            v[j] += b * r[j];
        }
        __stcs(kept + i, *(VECTOR*)r);
        if (b != 0)
            __stcs(next + i, *(VECTOR*)v);
    }
}
