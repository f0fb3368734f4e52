// The upwind flux in a face: Z^+ [H] - n x [E] along two tangents, times
// tau = Z^- / (Z^- + Z^+).
//
// Before it is included: macros REAL and COUPLE, and NFP.

// E and Z H along the two tangents of a face.
struct Tangential {
    REAL E1, E2, H1, H2;
};

// Of the boundary, point i of its face number `face`: u^+ = M u^- + g.
__device__ Tangential outside(const Tangential& inner, const REAL* data, const REAL* boundary,
                              unsigned face, unsigned i, unsigned faces)
{
    const REAL* m = boundary + face * 9;   // M of E and H, the two tangents, Z
    Tangential outer
        = {m[0] * inner.E1, m[0] * inner.E2, m[1] * inner.H1, m[1] * inner.H2};
    for (int d = 0; d < 3; ++d) {
        const REAL* g = data + ((size_t)d * faces + face) * NFP + i;
        const REAL E = g[0], H = m[8] * g[(size_t)3 * faces * NFP];
        outer.E1 += m[2 + d] * E, outer.E2 += m[5 + d] * E;
        outer.H1 += m[2 + d] * H, outer.H2 += m[5 + d] * H;
    }
    return outer;
}

// The two numbers, from both sides; `turn` is a quarter turn in the face.
__device__ COUPLE upwind(const Tangential& inner, const Tangential& outer, const REAL* turn,
                         REAL tau, unsigned f)
{
    const REAL sign = f % 2 ? -tau : tau;   // of t_1 x t_2, outward or inward
    const REAL jump1 = outer.E1 - inner.E1, jump2 = outer.E2 - inner.E2;
    COUPLE both;
    both.x = tau * outer.H1 - (1 - tau) * inner.H1 + sign * (turn[0] * jump2 - turn[1] * jump1);
    both.y = tau * outer.H2 - (1 - tau) * inner.H2 + sign * (turn[1] * jump2 - turn[2] * jump1);
    return both;
}
