// One Runge-Kutta stage of DG for acoustic waves in one pass:
// res = a res + dt du/dt (res is not read if a = 0), new = u + b res (not
// written if b = 0).
//
// The state holds p and the contravariant velocities W_i = J grad r_i . v. Then
// div v takes three products with an entry of D, not nine; W_i is what flows in
// through face i, from either side, and minus their sum what flows in through
// face 0; and one number a face node is lifted, not four. A VECTOR has p and all
// W_i of a node or, in fp64, p and W_1 or W_2 and W_3: an element has those of
// all nodes, then the others of all nodes.
//
// Without TENSOR, a row of LANES threads works on INLINE elements and a thread
// on NODES nodes of each. With it, a warp works on 8 HALVES = INLINE elements
// and NODES tiles of 8 nodes, and the tensor cores multiply. ROWS rows make a
// block, of which a multiprocessor shall hold BLOCKS.
//
// Macros: REAL, COUPLE (two of them), VECTOR (16 bytes of them), NP, NFP, the
// above and UNROLL.

// An fp64 product takes p and W_j together: -grad p, and -div v in three parts.
__device__ constexpr int partner(int f, int) { return f + 3; }

#include "tensor.cuh"

constexpr int WORDS = 4 / WIDTH;                // VECTORs a node
constexpr int SIZE = WORDS * NP;                // and an element
constexpr int GEOMETRY = 20;                    // numbers that describe an element
constexpr int DESCRIBED = GEOMETRY / WIDTH;     // VECTORs of them
constexpr int ELEMENTS = ROWS * INLINE;
constexpr int DEPTH = UNROLL;                   // nvcc's pragma takes no macro
__device__ constexpr int apart(int n, int rest) { return n + (8 + rest - n % 8) % 8; }
// Elements begin STATE and FLUX vectors apart, so that the threads of a warp read
// from different banks.
#if TENSOR
struct alignas(PAIR * sizeof(REAL)) Columns { REAL x[PAIR]; };   // of a lane, in a step
constexpr int PARTS = HALVES == 2 ? 4 : 6;      // accumulators a node
constexpr int COLUMNS = round_up(NP, STEP), FACE = round_up(NFP, STEP);
constexpr int LANES = (NP + 8 * NODES - 1) / (8 * NODES) * 32;
constexpr int STATE = WORDS == 1 ? COLUMNS | 1 : apart(WORDS * COLUMNS, 4);
constexpr int FLUX = apart(4 * FACE / WIDTH, 2);
#else
constexpr int COLUMNS = round_up(NP, 2), FACE = round_up(NFP, 2);
constexpr int LANES = (NP + NODES - 1) / NODES;
constexpr int STATE = WORDS * COLUMNS | 1, FLUX = 4 * FACE / WIDTH | 1;
#endif
constexpr int THREADS = round_up(ROWS * LANES, 32);
constexpr int POINTS = 4 * NFP;                 // of the surface of an element
__device__ constexpr int turns(int n) { return (n + THREADS - 1) / THREADS; }

// To shared memory, past the registers where the device can.
__device__ void fetch(VECTOR* to, const VECTOR* from)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
#else
    *to = *from;
#endif
}

// The four fields of a node; the second VECTOR lies so many further on.
__device__ void fields(REAL (&to)[4], const VECTOR* from, int further)
{
#pragma unroll
    for (int k = 0; k < WORDS; ++k)
        ((VECTOR*)to)[k] = from[k * further];
}

// What flows in through face f.
__device__ REAL inflow(const REAL (&v)[4], unsigned f)
{
    return f == 0 ? -(v[1] + v[2] + v[3]) : f == 1 ? v[1] : f == 2 ? v[2] : v[3];
}

// Accumulators c at a node: -grad p in covariant components, then -div v. The
// number A lifted from face f is added to the latter and, times q, to component
// f of the former, of face 0 (with -q) to all; f is known to the compiler.
template <int N> __device__ void add_face(REAL (&c)[N], int f, REAL q, REAL A)
{
#pragma unroll
    for (int j = 0; j < 3; ++j)
        if (f == 0 || f == j + 1)
            c[j] += q * A;
    c[3] += A;
}

// From accumulators to du/dt; of -div v there may be more parts.
template <int N> __device__ void scale(REAL (&w)[4], const REAL (&c)[N], const REAL* m)
{
    w[0] = c[3];
#pragma unroll
    for (int k = 4; k < N; ++k)
        w[0] += c[k];
    w[0] *= m[6];
    w[1] = m[0] * c[0] + m[1] * c[1] + m[2] * c[2];
    w[2] = m[1] * c[0] + m[3] * c[1] + m[4] * c[2];
    w[3] = m[2] * c[0] + m[4] * c[1] + m[5] * c[2];
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) fused(
    const REAL* __restrict__ u, const REAL* __restrict__ data,
    const unsigned* __restrict__ links, const unsigned* __restrict__ opposite,
    const unsigned* __restrict__ face_nodes, const REAL* __restrict__ geometry,
    const REAL* __restrict__ boundary, const REAL* __restrict__ derivative,
    const REAL* __restrict__ lift, REAL* __restrict__ res, REAL* __restrict__ newer,
    unsigned faces, REAL a, REAL b, REAL dt)
{
    extern __shared__ VECTOR memory[];
    VECTOR* state = memory;
    VECTOR* flux = state + ELEMENTS * STATE;
    REAL* shape = (REAL*)(flux + ELEMENTS * FLUX);
    unsigned* link = (unsigned*)(shape + ELEMENTS * GEOMETRY);
    const unsigned thread = threadIdx.x, first = blockIdx.x * ELEMENTS;
    const VECTOR* own = (const VECTOR*)u + (size_t)first * SIZE;
    VECTOR* kept = (VECTOR*)res + (size_t)first * SIZE;
    VECTOR* next = (VECTOR*)newer + (size_t)first * SIZE;

    // 1. Fetch the states, which are contiguous, and what describes the elements;
    // tell the L2 cache that res will be wanted.
#pragma unroll 4
    for (unsigned k = 0, i = thread; k < turns(ELEMENTS * SIZE); ++k, i += THREADS)
        if (i < ELEMENTS * SIZE)
            fetch(state + i / SIZE * STATE + i / NP % WORDS * COLUMNS + i % NP, own + i);
#pragma unroll
    for (unsigned k = 0, i = thread; k < turns(ELEMENTS * DESCRIBED); ++k, i += THREADS)
        if (i < ELEMENTS * DESCRIBED)
            fetch((VECTOR*)shape + i, (const VECTOR*)geometry + (first * DESCRIBED + i));
#pragma unroll 1
    for (unsigned i = thread; i < ELEMENTS; i += THREADS) {
        fetch((VECTOR*)link + i, (const VECTOR*)links + (first + i));
        for (unsigned n = NP; n < COLUMNS; ++n)   // zero times D or LIFT is zero
            for (unsigned k = 0; k < WORDS; ++k)
                state[i * STATE + k * COLUMNS + n] = VECTOR();
        for (unsigned n = NFP; n < FACE; ++n)
            for (unsigned f = 0; f < 4; ++f)
                ((REAL*)(flux + i * FLUX))[f * FACE + n] = 0;
    }
#pragma unroll 1
    for (unsigned i = thread * 8; a != 0 && i < ELEMENTS * SIZE; i += THREADS * 8)
        asm volatile("prefetch.global.L2 [%0];" :: "l"(kept + i));
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();

    // 2. One number a face node: what the neighbor has more of p, and what flows in
    // from both sides, weighted. A thread has the same face node of many elements;
    // where there are fewer face nodes than threads, teams share the elements.
#pragma unroll
    for (int start = 0; start < POINTS; start += THREADS) {
        const int count = POINTS - start < THREADS ? POINTS - start : THREADS;
        const int teams = THREADS / count;
        const unsigned q = start + thread % count, f = q / NFP, i = q % NFP;
        const unsigned node = face_nodes[q];
#pragma unroll 2
        for (unsigned e = thread / count; thread < teams * count && e < ELEMENTS; e += teams) {
            const unsigned way = link[e * 4 + f] % 32, neighbor = link[e * 4 + f] / 32;
            alignas(16) REAL v[4], w[4];
            fields(v, state + e * STATE + node, COLUMNS);
            REAL more = -v[0], in = inflow(v, f);
            if (way < 24) {
                fields(w, (const VECTOR*)u + (neighbor * SIZE + opposite[way * NFP + i]), NP);
                more += w[0], in += inflow(w, way / 6);
            } else {   // the boundary: u^+ = M u^- + g
                const REAL* m = boundary + neighbor * 5;
                more += m[0] * v[0], in -= m[1] * in;
                for (int c = 0; c < 4; ++c) {
                    const REAL g = data[((size_t)c * faces + neighbor) * NFP + i];
                    if (c == 0)
                        more += g;
                    else
                        in += m[1 + c] * g;
                }
            }
            const REAL* weight = shape + e * GEOMETRY + 8 + 2 * f;
            ((REAL*)(flux + e * FLUX))[f * FACE + i] = weight[0] * more - weight[1] * in;
        }
    }
    __syncthreads();

#if TENSOR
    // 3. Lift face by face: lane 4 g + t has elements g and g + 8 and, of tile i,
    // nodes t and t + 4.
    const unsigned lane = thread % 32, g = lane / 4, t = lane % 4;
    const unsigned e = thread / LANES * INLINE + g, tile = thread % LANES / 32 * NODES;
    REAL c[NODES][HALVES][2][PARTS] = {};
    const Columns* q = (const Columns*)(flux + e * FLUX) + t;
    const Columns* l = (const Columns*)lift + tile * 4 * (FACE / STEP) * 32 + lane;
#pragma unroll
    for (int f = 0; f < 4; ++f) {
        const REAL* factor = shape + e * GEOMETRY + 16 + f;
        REAL lifted[NODES][HALVES][2][1] = {};
#pragma unroll DEPTH
        for (int j = 0; j < FACE; j += STEP, q += 4, l += 32) {
            Columns v[2], L[NODES];
#pragma unroll
            for (int i = 0; i < NODES; ++i)
                L[i] = l[i * 4 * (FACE / STEP) * 32];
            v[0] = q[0];
            if constexpr (HALVES == 2) {
                v[1] = q[8 * FLUX * WIDTH / PAIR];
                multiply(lifted, 0, Operand<2>(v[0].x), Operand<NODES>(L[0].x));
            } else {   // times q for -grad p, and for -div v
                v[1] = v[0], v[0].x[0] *= factor[0];
                multiply(c, f ? f - 1 : 0, Operand<2>(v[0].x), Operand<NODES>(L[0].x));
            }
        }
#pragma unroll
        for (int i = 0; i < NODES * HALVES * 2; ++i) {
            const int h = i / 2 % HALVES;
            REAL(&w)[PARTS] = c[i / 2 / HALVES][h][i % 2];
            if constexpr (HALVES == 2)
                add_face(w, f, factor[h * 8 * GEOMETRY], lifted[i / 2 / HALVES][h][i % 2][0]);
            else if (f == 0)
                w[1] = w[2] = w[0];
        }
    }

    // 4. -div v and -grad p; the signs are in the matrices.
    const VECTOR* s = state + e * STATE + t * PAIR;
    const Columns* d = (const Columns*)derivative + tile * (COLUMNS / STEP) * 3 * 32 + lane;
#pragma unroll DEPTH
    for (int m = 0; m < COLUMNS; m += STEP, s += STEP, d += 3 * 32) {
        alignas(16) REAL v[HALVES * PAIR][4];
        Columns D[3][NODES];
#pragma unroll
        for (int i = 0; i < 3 * NODES; ++i)
            D[i / NODES][i % NODES] =
                d[i % NODES * (COLUMNS / STEP) * 3 * 32 + i / NODES * 32];
#pragma unroll
        for (int i = 0; i < HALVES * PAIR; ++i)
            fields(v[i], s + i / PAIR * 8 * STATE + i % PAIR, COLUMNS);
        REAL divergence[NODES][HALVES][2][1] = {};   // of a step; rounded once
#pragma unroll
        for (int x = 0; x < 3; ++x) {
            const Operand<NODES> matrix(D[x][0].x);
            if constexpr (HALVES == 2) {
                add_product(c, x, 1, Operand<2>(v[0], 4), matrix);
                multiply(divergence, 0, Operand<2>(v[0] + 1 + x, 4), matrix);
            } else {   // p and W together
                add_product(c, x, 1, Operand<2>(v[0], 1 + x), matrix);
            }
        }
#pragma unroll
        for (int i = 0; HALVES == 2 && i < NODES * HALVES * 2; ++i)
            c[i / 2 / HALVES][i / 2 % HALVES][i % 2][3] +=
                divergence[i / 2 / HALVES][i / 2 % HALVES][i % 2][0];
    }
    // A thread's nodes begin at a corner and lie STRIDE apart, two in each tile; its
    // elements lie APART.
    const unsigned corner = tile * 8 + t;
    constexpr int STRIDE = 8, SIDE = 2, APART = 8, SLOTS = HALVES * SIDE;
#else
    // 3. Lift face by face, at NODES nodes, lane + i LANES, of INLINE elements.
    const unsigned row = thread / LANES < ROWS ? thread / LANES : ROWS - 1;
    const unsigned lane = thread % LANES, e = row * INLINE;
    REAL c[NODES][INLINE][1][4] = {};
    const REAL* q = (const REAL*)(flux + e * FLUX);
    const COUPLE* l = (const COUPLE*)lift + lane;
#pragma unroll
    for (int f = 0; f < 4; ++f) {
        REAL lifted[NODES][INLINE] = {};
#pragma unroll DEPTH
        for (int j = 0; j < FACE; j += 2, q += 2, l += NODES * LANES) {
            COUPLE L[NODES];
#pragma unroll
            for (int i = 0; i < NODES; ++i)
                L[i] = l[i * LANES];
#pragma unroll
            for (int k = 0; k < INLINE; ++k) {
                const COUPLE v = *(const COUPLE*)(q + k * FLUX * WIDTH);
#pragma unroll
                for (int i = 0; i < NODES; ++i)
                    lifted[i][k] += L[i].x * v.x, lifted[i][k] += L[i].y * v.y;
            }
        }
#pragma unroll
        for (int i = 0; i < NODES * INLINE; ++i)
            add_face(c[i / INLINE][i % INLINE][0], f,
                     shape[(e + i % INLINE) * GEOMETRY + 16 + f], lifted[i / INLINE][i % INLINE]);
    }

    // 4. -div v and -grad p; the signs are in the matrices.
    const VECTOR* s = state + e * STATE;
    const COUPLE* d = (const COUPLE*)derivative + lane;
#pragma unroll DEPTH
    for (int m = 0; m < COLUMNS; m += 2, s += 2, d += NODES * 3 * LANES) {
        COUPLE D[NODES][3];
#pragma unroll
        for (int i = 0; i < NODES * 3; ++i)
            D[i / 3][i % 3] = d[i * LANES];
#pragma unroll
        for (int k = 0; k < INLINE; ++k) {
            alignas(16) REAL v[4], w[4];
            fields(v, s + k * STATE, COLUMNS);
            fields(w, s + k * STATE + 1, COLUMNS);
#pragma unroll
            for (int i = 0; i < NODES; ++i)
#pragma unroll
                for (int x = 0; x < 3; ++x) {
                    c[i][k][0][x] += D[i][x].x * v[0];
                    c[i][k][0][3] += D[i][x].x * v[1 + x];
                    c[i][k][0][x] += D[i][x].y * w[0];
                    c[i][k][0][3] += D[i][x].y * w[1 + x];
                }
        }
    }
    const unsigned corner = thread < ROWS * LANES ? lane : NP;   // NP: none
    constexpr int STRIDE = LANES, SIDE = 1, APART = 1, SLOTS = INLINE;
#endif

    // 5. The update: a thread has the rates of its own nodes.
    const VECTOR* before = state + e * STATE + corner;
    kept += e * SIZE + corner, next += e * SIZE + corner;
#pragma unroll
    for (int i = 0; i < NODES; ++i) {
        VECTOR r[SLOTS][WORDS];
#pragma unroll
        for (int k = 0; k < SLOTS; ++k) {
            const int n = i * STRIDE + k % SIDE * 4, at = k / SIDE * APART * SIZE + n;
#pragma unroll
            for (int j = 0; j < WORDS; ++j)   // not wanted again: leave the cache to u
                if (a != 0 && corner + n < NP)
                    r[k][j] = __ldcs(kept + at + j * NP);
        }
#pragma unroll
        for (int k = 0; k < SLOTS; ++k) {
            const int n = i * STRIDE + k % SIDE * 4, at = k / SIDE * APART * SIZE + n;
            if (corner + n >= NP)
                continue;
            alignas(16) REAL w[4], v[4];
            fields(v, before + k / SIDE * APART * STATE + n, COLUMNS);
            scale(w, c[i][k / SIDE][k % SIDE], shape + (e + k / SIDE * APART) * GEOMETRY);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                w[j] *= dt;
                if (a != 0)
                    w[j] += a * ((REAL*)r[k])[j];
                v[j] += b * w[j];
            }
#pragma unroll
            for (int j = 0; j < WORDS; ++j) {
                __stcs(kept + at + j * NP, ((VECTOR*)w)[j]);
                if (b != 0)
                    __stcs(next + at + j * NP, ((VECTOR*)v)[j]);
            }
        }
    }
}
