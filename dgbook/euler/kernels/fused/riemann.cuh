// The numerical flux.

enum { ROE, RUSANOV, HLLC };
constexpr REAL GAMMA = 1.4, FIX = 0.1;

// The pressure of a state: p = (gamma - 1) (rho E - rho |v|^2 / 2).
__device__ REAL pressure(const REAL (&u)[4], REAL vx, REAL vy)
{
    return (GAMMA - 1) * (u[3] - REAL(0.5) * (u[1] * vx + u[2] * vy));
}

// The quantities that fluxes need from the state u on one side of an
// edge.
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

// Twice |speed| or, below delta, twice Harten's parabola.
__device__ REAL fixed(REAL speed, REAL delta, REAL one_over_delta)
{
    const REAL size = fabs(speed);
    return size < delta ? speed * speed * one_over_delta + delta
                        : 2 * size;
}

// Twice the flux along the unit normal n, which points from left to
// right. Formulas and references are in dgbook/euler/problem.py.
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
        const REAL SM =
            (r.p - l.p + ml * l.vn - mr * r.vn) * inverse(ml - mr);
        const bool from_left = SM >= 0;
        const REAL S = from_left ? SL : SR;
        const REAL speed = from_left ? l.vn : r.vn;
        const REAL p = from_left ? l.p : r.p, m = from_left ? ml : mr;
        const REAL outer =
            from_left ? fmin(SL, REAL(0)) : fmax(SR, REAL(0));
        const REAL star = m * inverse(S - SM);
        const REAL push = star * (SM - speed);
        const REAL ratio = star * (from_left ? l.inv : r.inv) - 1;
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const REAL u = from_left ? left[c] : right[c];
            F[c] = 2 * (speed + outer * ratio) * u;
        }
        F[1] += 2 * (p + outer * push) * nx;
        F[2] += 2 * (p + outer * push) * ny;
        F[3] += 2 * (speed * p + outer * push * (SM + p * inverse(m)));
        return;
    }
    REAL damping, C1 = 0, C2 = 0;
    if constexpr (FLUX == RUSANOV) {
        damping = fmax(fabs(l.vn) + l.sound(), fabs(r.vn) + r.sound());
    } else {
        damping = fabs(vn);
        const REAL delta = FIX * c;
        const REAL one_over_delta = one_over_c * (1 / FIX);
        const REAL plus = fixed(vn + c, delta, one_over_delta);
        const REAL minus = fixed(vn - c, delta, one_over_delta);
        const REAL s = REAL(0.25) * (plus + minus) - damping;
        const REAL d = REAL(0.25) * (plus - minus);
        const REAL dp = (r.p - l.p) * one_over_c;
        const REAL rho_dv = (right[1] - left[1]) * nx
                            + (right[2] - left[2]) * ny
                            - (right[0] - left[0]) * vn;
        C1 = (s * dp + d * rho_dv) * one_over_c;
        C2 = d * dp + s * rho_dv;
    }
    const REAL a = l.vn + damping, b = r.vn - damping;
    const REAL p = l.p + r.p - C2;
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
