// One Runge-Kutta stage of quadrature DG for the Euler equations in one pass.
//
// A thread has an element to itself: nobody waits for anybody, and all sums are
// in registers. Every number of the matrices is wanted by all threads at once:
// constant memory, from which a fused multiply-add reads an operand for free.
// Of an edge both elements compute the flux, so that nobody adds to another's
// residual, and a stage is one kernel.
//
// A state is stored in tiles of 32 elements, [tile][node][field][element]: what
// a warp reads is contiguous, and a thread finds all its numbers at constant
// distances from the first.
//
// Macros: REAL; NP, NFP, NQ, NE (nodes, nodes of an edge, quadrature points in
// the triangle, rounded up to POINTS, and on an edge); FLUX; the plan, THREADS,
// BLOCKS, POINTS (at a time), PASSES (over the nodes), SHARED (where the state
// is kept) and UNROLL (turns of the loops over points); and the tables, see tables() in dgbook/euler/fused.py.

enum { ROE, RUSANOV, HLLC };
enum { RATE, NEXT, LAST };   // what a launch writes, see below

constexpr int TILE = 32, WALL = 1;
constexpr int NODES = (NP + PASSES - 1) / PASSES;   // whose residual is summed up in a pass
constexpr int ROWS = PASSES * NODES;                // of the tables; those above NP are zero
constexpr int DEPTH = UNROLL, SIDES = SHARED ? 1 : 3;   // nvcc's pragma takes no macro
constexpr REAL GAMMA = 1.4, FIX = 0.1;

__constant__ REAL interpolation[NQ][NP] = INTERPOLATION;    // phi_i at point q
__constant__ REAL projection[NQ][ROWS][2] = PROJECTION;     // M^-1 w_q grad phi_i
__constant__ REAL trace[NE][NFP] = TRACE;                   // phi_j at point q of an edge
__constant__ REAL nodal[NFP][NE] = NODAL;                   // the inverse of trace
__constant__ REAL lift[3][NE][ROWS] = LIFT;                 // -M^-1 w_q phi_i
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

// What the fluxes need of a state u on one side of an edge.
struct Side {
    REAL rho, root, inv, vx, vy, p, vn;   // root = sqrt(rho)
    __device__ Side(const REAL (&u)[4], REAL nx, REAL ny)
    {
        const REAL r = inverse_root(u[0]);
        rho = u[0], root = u[0] * r, inv = r * r;
        vx = u[1] * inv, vy = u[2] * inv;
        p = (GAMMA - 1) * (u[3] - REAL(0.5) * (u[1] * vx + u[2] * vy));
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
__device__ void riemann(REAL (&F)[4], const REAL (&left)[4], const REAL (&right)[4],
                        REAL nx, REAL ny)
{
    const Side l(left, nx, ny), r(right, nx, ny);
    REAL vx, vy, H, vn, c, one_over_c;   // Roe's average
    if constexpr (FLUX != RUSANOV) {
        const REAL a = l.root * inverse(l.root + r.root), b = 1 - a;
        vx = a * l.vx + b * r.vx, vy = a * l.vy + b * r.vy;
        H = a * (left[3] + l.p) * l.inv + b * (right[3] + r.p) * r.inv;
        vn = vx * nx + vy * ny;
        const REAL squared = (GAMMA - 1) * (H - REAL(0.5) * (vx * vx + vy * vy));
        one_over_c = inverse_root(squared);
        c = squared * one_over_c;
    }
    if constexpr (FLUX == HLLC) {
        const REAL SL = fmin(l.vn - l.sound(), vn - c), SR = fmax(r.vn + r.sound(), vn + c);
        const REAL ml = l.rho * (SL - l.vn), mr = r.rho * (SR - r.vn);
        const REAL SM = (r.p - l.p + ml * l.vn - mr * r.vn) * inverse(ml - mr);
        const bool from_left = SM >= 0;
        const REAL S = from_left ? SL : SR, own = from_left ? l.vn : r.vn;
        const REAL p = from_left ? l.p : r.p, m = from_left ? ml : mr;
        const REAL outer = 2 * (from_left ? fmin(SL, REAL(0)) : fmax(SR, REAL(0)));
        const REAL star = m * inverse(S - SM), push = star * (SM - own);
        const REAL ratio = star * (from_left ? l.inv : r.inv) - 1;
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const REAL u = from_left ? left[c] : right[c];
            F[c] = 2 * own * u + outer * ratio * u;
        }
        F[1] += (2 * p + outer * push) * nx;
        F[2] += (2 * p + outer * push) * ny;
        F[3] += 2 * own * p + outer * push * (SM + p * inverse(m));
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
        const REAL s = REAL(0.25) * (plus + minus) - damping, d = REAL(0.25) * (plus - minus);
        const REAL dp = (r.p - l.p) * one_over_c;
        const REAL rho_dv = (right[1] - left[1]) * nx + (right[2] - left[2]) * ny
                            - vn * (right[0] - left[0]);
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
// LAST    out = base + ((one - base) + 2 (two - base) + (u - base)) / 3 + dt f(u)
//
// `geometry` are rx, ry, sx, sy; `links` are 4 n + g for edge g of element n,
// or 4 (2 b + wall) + 3 for row b of the boundary, of `edges` rows. In LAST the
// smallest of the `names` of elements that are no gas any more goes to `bad`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) fused(
    const REAL* __restrict__ u, const REAL* __restrict__ data,
    const unsigned* __restrict__ links, const REAL* __restrict__ geometry,
    const int* __restrict__ names, const REAL* base, const REAL* one, const REAL* two,
    REAL* out, int* bad, unsigned elements, unsigned edges, int stage, REAL dt)
{
    const unsigned k = blockIdx.x * THREADS + threadIdx.x, stride = (elements + TILE - 1) / TILE * TILE;
    if (k >= elements)
        return;
    const size_t first = (size_t)(k / TILE) * (4 * NP * TILE) + k % TILE;

    // 1. The own state, in registers or in a column of shared memory, which no
    // other thread reads.
#if SHARED
    __shared__ REAL columns[(4 * NP + 4 * NFP) * THREADS];
    REAL* const state = columns + threadIdx.x;
    constexpr int APART = THREADS;
#else
    REAL state[4 * NP + 4 * NFP];
    constexpr int APART = 1;
#endif
    REAL* const far = state + 4 * NP * APART;   // the nodes across an edge
#pragma unroll
    for (int i = 0; i < 4 * NP; ++i)
        state[i * APART] = u[first + i * TILE];
    const REAL rx = geometry[k], ry = geometry[k + stride];
    const REAL sx = geometry[k + 2 * stride], sy = geometry[k + 3 * stride];
    const unsigned met[3] = {links[k], links[k + stride], links[k + 2 * stride]};
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
                        w[j][c] += interpolation[q + j][i] * state[(4 * i + c) * APART];
#pragma unroll
            for (int j = 0; j < POINTS; ++j) {
                const REAL inv = inverse(w[j][0]), vx = w[j][1] * inv, vy = w[j][2] * inv;
                const REAL p = (GAMMA - 1)
                               * (w[j][3] - REAL(0.5) * (w[j][1] * vx + w[j][2] * vy));
                const REAL r = vx * rx + vy * ry, s = vx * sx + vy * sy;
                R[j][0] = r * w[j][0], S[j][0] = s * w[j][0];
                R[j][1] = r * w[j][1] + p * rx, S[j][1] = s * w[j][1] + p * sx;
                R[j][2] = r * w[j][2] + p * ry, S[j][2] = s * w[j][2] + p * sy;
                R[j][3] = r * (w[j][3] + p), S[j][3] = s * (w[j][3] + p);
            }
#pragma unroll
            for (int i = 0; i < NODES; ++i)
#pragma unroll
                for (int j = 0; j < POINTS; ++j)
#pragma unroll
                    for (int c = 0; c < 4; ++c) {
                        rate[i][c] += projection[q + j][start + i][0] * R[j][c];
                        rate[i][c] += projection[q + j][start + i][1] * S[j][c];
                    }
        }

        // 3. The edges: the far nodes in my running order, fluxes, lift.
#pragma unroll SIDES
        for (int f = 0; f < 3; ++f) {
            const REAL Nx = f == 0 ? rx + sx : f == 1 ? -rx : -sx;   // outward, as long as Fs
            const REAL Ny = f == 0 ? ry + sy : f == 1 ? -ry : -sy;
            const REAL length = inverse_root(Nx * Nx + Ny * Ny), nx = Nx * length, ny = Ny * length;
            const REAL half = REAL(0.5) * (Nx * nx + Ny * ny);
            const unsigned link = f == 0 ? met[0] : f == 1 ? met[1] : met[2];
            const unsigned n = link / 4, g = link % 4;
            if (g < 3) {
                const REAL* there = u + (size_t)(n / TILE) * (4 * NP * TILE) + n % TILE;
#pragma unroll
                for (int j = 0; j < NFP; ++j)
#pragma unroll
                    for (int c = 0; c < 4; ++c)   // the neighbor runs the other way
                        far[(4 * j + c) * APART]
                            = there[(4 * edge_nodes[g][NFP - 1 - j] + c) * TILE];
            } else if (n % 2 == WALL) {
#pragma unroll
                for (int j = 0; j < NFP; ++j) {
                    const int i = 4 * edge_nodes[f][j];
                    const REAL x = state[(i + 1) * APART], y = state[(i + 2) * APART];
                    const REAL twice = 2 * (x * nx + y * ny);
                    far[4 * j * APART] = state[i * APART];
                    far[(4 * j + 1) * APART] = x - twice * nx;
                    far[(4 * j + 2) * APART] = y - twice * ny;
                    far[(4 * j + 3) * APART] = state[(i + 3) * APART];
                }
            } else {   // given at points: the nodal values that make them
#pragma unroll
                for (int j = 0; j < NFP; ++j)
#pragma unroll
                    for (int c = 0; c < 4; ++c) {
                        REAL sum = 0;
                        for (int q = 0; q < NE; ++q)
                            sum += nodal[j][q] * data[(c * edges + n / 2) * NE + q];
                        far[(4 * j + c) * APART] = sum;
                    }
            }
#pragma unroll DEPTH
            for (int q = 0; q < NE; ++q) {
                REAL left[4] = {}, right[4] = {}, F[4];
                forget();
#pragma unroll
                for (int j = 0; j < NFP; ++j)
#pragma unroll
                    for (int c = 0; c < 4; ++c) {
                        left[c] += trace[q][j] * state[(4 * edge_nodes[f][j] + c) * APART];
                        right[c] += trace[q][j] * far[(4 * j + c) * APART];
                    }
                riemann(F, left, right, nx, ny);
#pragma unroll
                for (int c = 0; c < 4; ++c)
                    F[c] *= half;
#pragma unroll
                for (int i = 0; i < NODES; ++i)
#pragma unroll
                    for (int c = 0; c < 4; ++c)
                        rate[i][c] += lift[f][q][start + i] * F[c];
            }
        }

        // 4. The update.
        forget();
        const size_t at = first + start * 4 * TILE;
        const REAL *old = base + at, *second = one + at, *third = two + at;
        const int values = 4 * (ROWS == NP || start + NODES <= NP ? NODES : NP - start);
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
                gas = gas && w[0] > 0 && w[0] * w[3] > REAL(0.5) * (w[1] * w[1] + w[2] * w[2]);
            }
    }
    if (stage == LAST && !gas)
        atomicMin(bad, names[k]);
}
