// The upwind flux on a face: the components of Z^+ [H] - n x [E] along
// its two tangents, times zeta = Z^- / (Z^- + Z^+).
//
// It needs the macros REAL and COUPLE, and NFP.

// E and Z H along the two tangents of a face.
struct Tangential {
    REAL E1, E2, H1, H2;
};

// The exterior fields at point i of boundary face `face`: the mirror
// of the interior ones, and what comes in.
__device__ Tangential outside(const Tangential& inner, const REAL* data,
                              const REAL* boundary, unsigned face,
                              unsigned i, unsigned faces)
{
    // m_E, m_H, the two tangents, and Z.
    const REAL* m = boundary + face * 9;
    Tangential outer = {m[0] * inner.E1, m[0] * inner.E2,
                        m[1] * inner.H1, m[1] * inner.H2};
    for (int d = 0; d < 3; ++d) {
        const REAL* g = data + ((size_t)d * faces + face) * NFP + i;
        const REAL E = g[0], H = m[8] * g[(size_t)3 * faces * NFP];
        outer.E1 += m[2 + d] * E, outer.E2 += m[5 + d] * E;
        outer.H1 += m[2 + d] * H, outer.H2 += m[5 + d] * H;
    }
    return outer;
}

// The flux from the fields of both sides. `turn` is a rotation by 90
// degrees in the face.
__device__ COUPLE upwind(const Tangential& inner,
                         const Tangential& outer, const REAL* turn,
                         REAL zeta, unsigned f)
{
    // The sign says whether t_1 x t_2 points outward or inward.
    const REAL sign = f % 2 ? -zeta : zeta;
    const REAL jump1 = outer.E1 - inner.E1, jump2 = outer.E2 - inner.E2;
    COUPLE both;
    both.x = zeta * outer.H1 - (1 - zeta) * inner.H1
             + sign * (turn[0] * jump2 - turn[1] * jump1);
    both.y = zeta * outer.H2 - (1 - zeta) * inner.H2
             + sign * (turn[1] * jump2 - turn[2] * jump1);
    return both;
}
