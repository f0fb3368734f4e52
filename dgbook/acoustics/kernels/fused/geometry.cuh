// What the geometry of an element does to rates: -grad p in covariant components, then
// -div v.

// The number A lifted from face f is added to -div v and, times q, to component f of
// -grad p, of face 0 (with -q) to all; f is known to the compiler.
template <int N> __device__ void add_face(REAL (&rate)[N], int f, REAL q, REAL A)
{
#pragma unroll
    for (int j = 0; j < 3; ++j)
        if (f == 0 || f == j + 1)
            rate[j] += q * A;
    rate[3] += A;
}

// To du/dt; of -div v there may be more parts.
template <int N> __device__ void scale(REAL (&to)[4], const REAL (&rate)[N], const REAL* metric)
{
    to[0] = rate[3];
#pragma unroll
    for (int k = 4; k < N; ++k)
        to[0] += rate[k];
    to[0] *= metric[6];
    to[1] = metric[0] * rate[0] + metric[1] * rate[1] + metric[2] * rate[2];
    to[2] = metric[1] * rate[0] + metric[3] * rate[1] + metric[4] * rate[2];
    to[3] = metric[2] * rate[0] + metric[4] * rate[1] + metric[5] * rate[2];
}
