// One Runge-Kutta stage of quadrature DG for the Euler equations in one pass.
//
// A thread has an element to itself: nobody waits for anybody, and all sums are
// in registers. All threads want the same number of a matrix at the same time:
// constant memory gives it to all of them at once. Of an edge both elements
// compute the flux, so that nobody adds to another's residual, and a stage is
// one kernel.
//
// A state is stored in tiles of 32 elements, [tile][node][field][element]: what
// a warp reads is contiguous, and a thread finds all its numbers at constant
// distances from the first.
//
// Macros: REAL; NP, NFP, NQ, NE (nodes, nodes of an edge, quadrature points in
// the triangle, rounded up to POINTS, and on an edge); FLUX; the plan, THREADS,
// BLOCKS, POINTS (at a time), PASSES (over the nodes), SHARED (where the state
// is kept), COPIED (where the matrices are) and UNROLL (turns of the loops over
// points); and the matrices, see tables() in dgbook/euler/launch/fused.py.

enum { ROE, RUSANOV, HLLC };
enum { RATE, NEXT, LAST };   // what a launch writes, see below

constexpr int TILE = 32, WALL = 1;
constexpr int NODES = (NP + PASSES - 1) / PASSES;   // that a pass sums up
constexpr int ROWS = PASSES * NODES;   // of the matrices; above NP they are zero
constexpr int DEPTH = UNROLL, SIDES = SHARED ? 1 : 3;   // pragmas take no macro
constexpr int SIZE = 4 * NP, FAR_SIZE = 4 * NFP;
constexpr REAL GAMMA = 1.4, FIX = 0.1;

constexpr int COLUMNS = (ROWS + 3) / 4 * 4;   // rows begin at 16 bytes

struct alignas(16) Matrices {
    REAL interpolation[NQ][COLUMNS];   // phi_i at point q
    REAL projection[NQ][COLUMNS][2];   // M^-1 w_q grad phi_i
    REAL lift[3][NE][COLUMNS];         // -M^-1 w_q phi_i
    REAL trace[NE][NFP];               // phi_j at point q of an edge
};
#if COPIED
__device__ const Matrices given = {INTERPOLATION, PROJECTION, LIFT, TRACE};
#else
__constant__ const Matrices given = {INTERPOLATION, PROJECTION, LIFT, TRACE};
#endif
__constant__ REAL nodal[NFP][NE] = NODAL;   // the inverse of trace
__constant__ constexpr int edge_nodes[3][NFP] = EDGE_NODES;

// What was loaded from shared memory is loaded again when it is needed: the
// compiler would keep it, and spill sums to local memory instead.
__device__ void forget()
{
    if (SHARED)
        asm volatile("" ::: "memory");
}

// 1 / x and 1 / sqrt(x) to rounding. Of fp64 the hardware finds 20 bits; an
// iteration of third order makes them 60.
__device__ float inverse(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ float inverse_root(float x)
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ double inverse(double x)
{
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    const double e = fma(-x, y, 1.0);
    return fma(y, fma(e, e, e), y);
}

__device__ double inverse_root(double x)
{
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    const double e = fma(-x, y * y, 1.0);
    return fma(y * e, fma(e, 0.375, 0.5), y);
}

// Of a state: p = (gamma - 1) (rho E - rho |v|^2 / 2).
__device__ REAL pressure(const REAL (&u)[4], REAL vx, REAL vy)
{
    return (GAMMA - 1) * (u[3] - REAL(0.5) * (u[1] * vx + u[2] * vy));
}

// What the fluxes need of a state u on one side of an edge.
struct Side {
    REAL rho, root, inv, vx, vy, p, vn;   // root = sqrt(rho)
    __device__ Side(const REAL (&u)[4], REAL nx, REAL ny)
    {
        const REAL r = inverse_root(u[0]);
        rho = u[0], root = u[0] * r, inv = r * r;
        vx = u[1] * inv, vy = u[2] * inv;
        p = pressure(u, vx, vy);
        vn = vx * nx + vy * ny;
    }
    __device__ REAL sound() const
    {
        const REAL squared = GAMMA * p * inv;
        return squared * inverse_root(squared);
    }
};

// |speed|, and below delta Harten's parabola; all doubled.
__device__ REAL fixed(REAL speed, REAL delta, REAL one_over_delta)
{
    const REAL size = fabs(speed);
    return size < delta ? speed * speed * one_over_delta + delta : 2 * size;
}

// Twice the flux along the unit normal n from left to right; formulae and
// references are in dgbook/euler/problem.py.
__device__ void riemann(REAL (&F)[4], const REAL (&left)[4],
                        const REAL (&right)[4], REAL nx, REAL ny)
{
    const Side l(left, nx, ny), r(right, nx, ny);
    REAL vx, vy, H, vn, c, one_over_c;   // Roe's average
    if constexpr (FLUX != RUSANOV) {
        const REAL a = l.root * inverse(l.root + r.root), b = 1 - a;
        vx = a * l.vx + b * r.vx, vy = a * l.vy + b * r.vy;
        H = a * (left[3] + l.p) * l.inv + b * (right[3] + r.p) * r.inv;
        vn = vx * nx + vy * ny;
        const REAL kinetic = REAL(0.5) * (vx * vx + vy * vy);
        const REAL squared = (GAMMA - 1) * (H - kinetic);
        one_over_c = inverse_root(squared);
        c = squared * one_over_c;
    }
    if constexpr (FLUX == HLLC) {
        const REAL SL = fmin(l.vn - l.sound(), vn - c);
        const REAL SR = fmax(r.vn + r.sound(), vn + c);
        const REAL ml = l.rho * (SL - l.vn), mr = r.rho * (SR - r.vn);
        const REAL SM = (r.p - l.p + ml * l.vn - mr * r.vn) * inverse(ml - mr);
        const bool from_left = SM >= 0;
        const REAL S = from_left ? SL : SR, own = from_left ? l.vn : r.vn;
        const REAL p = from_left ? l.p : r.p, m = from_left ? ml : mr;
        const REAL outer = from_left ? fmin(SL, REAL(0)) : fmax(SR, REAL(0));
        const REAL star = m * inverse(S - SM), push = star * (SM - own);
        const REAL ratio = star * (from_left ? l.inv : r.inv) - 1;
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const REAL u = from_left ? left[c] : right[c];
            F[c] = 2 * (own + outer * ratio) * u;
        }
        F[1] += 2 * (p + outer * push) * nx;
        F[2] += 2 * (p + outer * push) * ny;
        F[3] += 2 * (own * p + outer * push * (SM + p * inverse(m)));
        return;
    }
    REAL damping, C1 = 0, C2 = 0;
    if constexpr (FLUX == RUSANOV) {
        damping = fmax(fabs(l.vn) + l.sound(), fabs(r.vn) + r.sound());
    } else {
        damping = fabs(vn);
        const REAL delta = FIX * c, one_over_delta = one_over_c * (1 / FIX);
        const REAL plus = fixed(vn + c, delta, one_over_delta);
        const REAL minus = fixed(vn - c, delta, one_over_delta);
        const REAL s = REAL(0.25) * (plus + minus) - damping;
        const REAL d = REAL(0.25) * (plus - minus);
        const REAL dp = (r.p - l.p) * one_over_c;
        const REAL rho_dv = (right[1] - left[1]) * nx + (right[2] - left[2]) * ny
                            - (right[0] - left[0]) * vn;
        C1 = (s * dp + d * rho_dv) * one_over_c;
        C2 = d * dp + s * rho_dv;
    }
    const REAL a = l.vn + damping, b = r.vn - damping, p = l.p + r.p - C2;
    F[0] = left[0] * a + right[0] * b - C1;
    F[1] = left[1] * a + right[1] * b + p * nx;
    F[2] = left[2] * a + right[2] * b + p * ny;
    F[3] = left[3] * a + right[3] * b + l.p * l.vn + r.p * r.vn;
    if constexpr (FLUX == ROE) {
        F[1] -= C1 * vx;
        F[2] -= C1 * vy;
        F[3] -= C1 * H + C2 * vn;
    }
}

// RATE    out = f(u)
// NEXT    out = base + dt f(u)
// LAST    out = base + ((one - base) + 2 (two - base) + (u - base)) / 3
//               + dt f(u)
//
// `geometry` are rx, ry, sx, sy; `links` are 4 n + g for edge g of element n,
// or 4 (2 b + wall) + 3 for row b of the boundary, of `edges` rows. In LAST the
// smallest of the `names` of elements that are no gas any more goes to `bad`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) fused(
    const REAL* __restrict__ u, const REAL* __restrict__ data,
    const unsigned* __restrict__ links, const REAL* __restrict__ geometry,
    const int* __restrict__ names, const REAL* base, const REAL* one,
    const REAL* two, REAL* out, int* bad, unsigned elements, unsigned edges,
    int stage, REAL dt)
{
    const unsigned k = blockIdx.x * THREADS + threadIdx.x;
    const unsigned stride = (elements + TILE - 1) / TILE * TILE;
#if COPIED
    __shared__ Matrices matrices;
    for (int i = threadIdx.x; i < sizeof(Matrices) / sizeof(uint4); i += THREADS)
        ((uint4*)&matrices)[i] = ((const uint4*)&given)[i];
    __syncthreads();
#else
    const Matrices& matrices = given;
#endif
    if (k >= elements)
        return;
    const size_t first = (size_t)(k / TILE) * (SIZE * TILE) + k % TILE;

    // 1. The own state, in registers or in a column of shared memory, which no
    // other thread reads.
#if SHARED
    __shared__ REAL columns[(SIZE + FAR_SIZE) * THREADS];
    REAL* const state = columns + threadIdx.x;
    constexpr int APART = THREADS;
#else
    REAL state[SIZE + FAR_SIZE];
    constexpr int APART = 1;
#endif
    REAL* const far = state + SIZE * APART;   // the nodes across an edge
#pragma unroll
    for (int i = 0; i < SIZE; ++i)
        state[i * APART] = u[first + i * TILE];
    const REAL rx = geometry[k], ry = geometry[k + stride];
    const REAL sx = geometry[k + 2 * stride], sy = geometry[k + 3 * stride];
    const unsigned met0 = links[k], met1 = links[k + stride];
    const unsigned met2 = links[k + 2 * stride];
    bool gas = true;

#pragma unroll 1
    for (int start = 0; start < ROWS; start += NODES) {
        REAL rate[NODES][4] = {};

        // 2. The volume, POINTS points at a time: interpolate, flux, project.
#pragma unroll DEPTH
        for (int q = 0; q < NQ; q += POINTS) {
            REAL w[POINTS][4] = {}, R[POINTS][4], S[POINTS][4];
            forget();
#pragma unroll
            for (int i = 0; i < NP; ++i)
#pragma unroll
                for (int j = 0; j < POINTS; ++j)
#pragma unroll
                    for (int c = 0; c < 4; ++c)
                        w[j][c] += matrices.interpolation[q + j][i]
                                   * state[(4 * i + c) * APART];
#pragma unroll
            for (int j = 0; j < POINTS; ++j) {
                const REAL(&v)[4] = w[j];
                const REAL inv = inverse(v[0]), vx = v[1] * inv, vy = v[2] * inv;
                const REAL p = pressure(v, vx, vy);
                const REAL r = vx * rx + vy * ry, s = vx * sx + vy * sy;
                R[j][0] = r * v[0], S[j][0] = s * v[0];
                R[j][1] = r * v[1] + p * rx, S[j][1] = s * v[1] + p * sx;
                R[j][2] = r * v[2] + p * ry, S[j][2] = s * v[2] + p * sy;
                R[j][3] = r * (v[3] + p), S[j][3] = s * (v[3] + p);
            }
#pragma unroll
            for (int i = 0; i < NODES; ++i)
#pragma unroll
                for (int j = 0; j < POINTS; ++j)
#pragma unroll
                    for (int c = 0; c < 4; ++c) {
                        const REAL(&d)[2] = matrices.projection[q + j][start + i];
                        rate[i][c] += d[0] * R[j][c];
                        rate[i][c] += d[1] * S[j][c];
                    }
        }

        // 3. The edges: the far nodes in my running order, fluxes, lift.
#pragma unroll SIDES
        for (int f = 0; f < 3; ++f) {
            const REAL Nx = f == 0 ? rx + sx : f == 1 ? -rx : -sx;   // Fs n
            const REAL Ny = f == 0 ? ry + sy : f == 1 ? -ry : -sy;
            const REAL length = inverse_root(Nx * Nx + Ny * Ny);
            const REAL nx = Nx * length, ny = Ny * length;
            const REAL half = REAL(0.5) * (Nx * nx + Ny * ny);   // Fs / 2
            const unsigned link = f == 0 ? met0 : f == 1 ? met1 : met2;
            const unsigned n = link / 4, g = link % 4;
            if (g < 3) {
                const REAL* there = u + (size_t)(n / TILE) * (SIZE * TILE) + n % TILE;
#pragma unroll
                for (int j = 0; j < NFP; ++j)
#pragma unroll
                    for (int c = 0; c < 4; ++c)   // the neighbor runs the other way
                        far[(4 * j + c) * APART]
                            = there[(4 * edge_nodes[g][NFP - 1 - j] + c) * TILE];
            } else if (n % 2 == WALL) {   // my own, mirrored
#pragma unroll
                for (int j = 0; j < NFP; ++j) {
                    const REAL* near = state + 4 * edge_nodes[f][j] * APART;
                    const REAL x = near[APART], y = near[2 * APART];
                    const REAL twice = 2 * (x * nx + y * ny);
                    far[4 * j * APART] = near[0];
                    far[(4 * j + 1) * APART] = x - twice * nx;
                    far[(4 * j + 2) * APART] = y - twice * ny;
                    far[(4 * j + 3) * APART] = near[3 * APART];
                }
            } else {   // given at points: the nodal values that make them
#pragma unroll
                for (int j = 0; j < NFP; ++j)
#pragma unroll
                    for (int c = 0; c < 4; ++c) {
                        REAL sum = 0;
                        for (int q = 0; q < NE; ++q)
                            sum += nodal[j][q]
                                   * data[(c * edges + n / 2) * NE + q];
                        far[(4 * j + c) * APART] = sum;
                    }
            }
#pragma unroll DEPTH
            for (int q = 0; q < NE; ++q) {
                REAL left[4] = {}, right[4] = {}, F[4];
                forget();
#pragma unroll
                for (int j = 0; j < NFP; ++j) {
                    const REAL* near = state + 4 * edge_nodes[f][j] * APART;
#pragma unroll
                    for (int c = 0; c < 4; ++c) {
                        const REAL t = matrices.trace[q][j];
                        left[c] += t * near[c * APART];
                        right[c] += t * far[(4 * j + c) * APART];
                    }
                }
                riemann(F, left, right, nx, ny);
#pragma unroll
                for (int c = 0; c < 4; ++c)
                    F[c] *= half;
#pragma unroll
                for (int i = 0; i < NODES; ++i)
#pragma unroll
                    for (int c = 0; c < 4; ++c)
                        rate[i][c] += matrices.lift[f][q][start + i] * F[c];
            }
        }

        // 4. The update.
        forget();
        const size_t at = first + start * 4 * TILE;
        const REAL *old = base + at, *second = one + at, *third = two + at;
        const bool whole = ROWS == NP || start + NODES <= NP;
        const int values = 4 * (whole ? NODES : NP - start);
#pragma unroll
        for (int i = 0; i < 4 * NODES; ++i)
            rate[i / 4][i % 4] *= dt;
        if (stage == NEXT && base == u) {
#pragma unroll
            for (int i = 0; i < 4 * NODES; ++i)
                if (i < values)
                    rate[i / 4][i % 4] += state[(4 * start + i) * APART];
        } else if (stage == NEXT) {
#pragma unroll
            for (int i = 0; i < 4 * NODES; ++i)
                if (i < values)
                    rate[i / 4][i % 4] += __ldcg(old + i * TILE);
        } else if (stage == LAST) {
#pragma unroll
            for (int i = 0; i < 4 * NODES; ++i)
                if (i < values) {
                    const REAL v = __ldcg(old + i * TILE);
                    const REAL sum = (__ldcs(second + i * TILE) - v)
                                     + 2 * (__ldcs(third + i * TILE) - v)
                                     + (state[(4 * start + i) * APART] - v);
                    rate[i / 4][i % 4] += sum * REAL(1.0 / 3);
                    rate[i / 4][i % 4] += v;
                }
        }
#pragma unroll
        for (int i = 0; i < NODES; ++i)
            if (4 * i < values) {
                const REAL(&w)[4] = rate[i];
#pragma unroll
                for (int c = 0; c < 4; ++c)
                    out[at + (4 * i + c) * TILE] = w[c];
                const REAL kinetic = REAL(0.5) * (w[1] * w[1] + w[2] * w[2]);
                gas = gas && w[0] > 0 && w[0] * w[3] > kinetic;   // p > 0
            }
    }
    if (stage == LAST && !gas)
        atomicMin(bad, names[k]);
}
