// How an element's geometry enters its rates, which are -grad p in
// covariant components, then -div v.

// Add the number A lifted from face f to -div v and, times q, to
// component f of -grad p; from face 0, where q has the opposite sign,
// to all components. The compiler knows f.
template <int N>
__device__ void add_face(REAL (&rate)[N], int f, REAL q, REAL A)
{
#pragma unroll
    for (int j = 0; j < 3; ++j)
        if (f == 0 || f == j + 1)
            rate[j] += q * A;
    rate[3] += A;
}

// From the rates to du/dt; -div v may come in several parts.
template <int N>
__device__ void scale(REAL (&to)[4], const REAL (&rate)[N],
                      const REAL* g)
{
    to[0] = rate[3];
#pragma unroll
    for (int k = 4; k < N; ++k)
        to[0] += rate[k];
    to[0] *= g[6];
    to[1] = g[0] * rate[0] + g[1] * rate[1] + g[2] * rate[2];
    to[2] = g[1] * rate[0] + g[3] * rate[1] + g[4] * rate[2];
    to[3] = g[2] * rate[0] + g[4] * rate[1] + g[5] * rate[2];
}
