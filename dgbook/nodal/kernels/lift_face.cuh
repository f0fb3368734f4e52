// The lift of a Bernstein basis in registers. One thread per face and
// number of the flux. Therefore slices need no barriers. A thread reads
// shared memory once per face point and writes it once per point of the
// tetrahedron, 16 bytes at a time.
//
// A slice of degree n has rows of n + 1, n, ..., 1 points. The numbers
// are control points times b!, where b is their multi-index. Then slice
// i + 1 comes from slice i by
//
//     s_b = -(i + 1) / (i + 2) sum_j s_{b + e_j}.
//
// It needs memory.cuh and teams.cuh.

// Index of point q of row r in a slice of degree n.
__device__ constexpr int at(int n, int q, int r)
{
    return r * (n + 1) - r * (r - 1) / 2 + q;
}

__device__ constexpr REAL factorial(int n)
{
    REAL product = 1;
    for (int i = 2; i <= n; ++i)
        product *= i;
    return product;
}

// Slice 0 from the flux y on a face. For control points times b!, twice
// L_0 is
//
//     sum_j (b_j + 1)^2 y_b
//     + sum_k b_k^2 sum_{j != k} y_{b + e_j - e_k}.
template <int SIZE> __device__ void lift_to_face(REAL (&t)[SIZE])
{
    REAL y[NFP];
#pragma unroll
    for (int r = 0; r <= ORDER; ++r)
#pragma unroll
        for (int q = 0; q <= ORDER - r; ++q) {
            const int b = ORDER - q - r, j = at(ORDER, q, r);
            y[j] = t[j] * (factorial(q) * factorial(r) * factorial(b));
        }
#pragma unroll
    for (int r = 0; r <= ORDER; ++r)
#pragma unroll
        for (int q = 0; q <= ORDER - r; ++q) {
            const int b = ORDER - q - r, j = at(ORDER, q, r);
            const int up = at(ORDER, q, r + 1);
            const int down = at(ORDER, q, r - 1);
            const int squares = b * b + q * q + r * r;
            REAL sum = REAL(squares + 2 * ORDER + 3) * y[j];
            if (b > 0)
                sum += REAL(b * b) * (y[j + 1] + y[up]);
            if (q > 0)
                sum += REAL(q * q) * (y[j - 1] + y[up - 1]);
            if (r > 0)
                sum += REAL(r * r) * (y[down] + y[down + 1]);
            t[j] = sum;
        }
}

// Lift one number of the flux from one face. `plane` holds the control
// points of the face, and then those of all slices.
__device__ void lift_face(VECTOR* plane)
{
    constexpr int SIZE = round_up(NFP, WIDTH);
    alignas(16) REAL t[SIZE], kept[WIDTH] = {};
#pragma unroll
    for (int i = 0; i < SIZE / WIDTH; ++i)
        ((VECTOR*)t)[i] = plane[i];
    lift_to_face(t);
#pragma unroll
    for (int n = ORDER; n >= 0; --n) {
        const int i = ORDER - n;   // this slice
#pragma unroll
        for (int r = 0; r <= n; ++r)
#pragma unroll
            for (int q = 0; q <= n - r; ++q) {
                REAL& s = t[at(n, q, r)];
                if (i > 0)
                    s = -REAL(i) / REAL(i + 1)
                        * (t[at(n + 1, q, r)] + t[at(n + 1, q + 1, r)]
                           + t[at(n + 1, q, r + 1)]);
                // Store 16 bytes as soon as they are complete.
                const int p = NP - tetrahedron(n) + at(n, q, r);
                kept[p % WIDTH] = s;
                if (p % WIDTH == WIDTH - 1 || p == NP - 1)
                    plane[p / WIDTH] = *(const VECTOR*)kept;
            }
    }
}
