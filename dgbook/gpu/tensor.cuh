// Products on tensor cores, for kernels that apply a matrix to the
// nodes of many elements; in fp32 with full accuracy.
//
// Before it is included: memory.cuh, the macro NODES (tiles of 8 nodes
// per warp), and the function partner, see mma.

constexpr int HALVES = WIDTH / 2;   // elements g and g + 8, or g
constexpr int PAIR = WIDTH / 2;     // columns of a matrix per lane
constexpr int STEP = 4 * PAIR;      // and per product

// A lane's part of an operand of a product of 16 x STEP by STEP x 8
// numbers. The 16 rows are one field of elements g and g + 8 or, in
// fp64, two fields of element g. Tensor cores read 11 bits of an fp32
// number. So it is split in two, and three of the four products are
// added; the fourth is 2^-22 of the largest. Of an fp64 number they
// read all bits.
template <int N> struct Operand {
    REAL high[N][PAIR], low[N][PAIR];
    __device__ Operand(const REAL* from, int stride = 1)
    {
#pragma unroll
        for (int i = 0; i < N * PAIR; ++i) {
            const REAL x = from[i * stride];
            REAL& top = high[i / PAIR][i % PAIR];
            if constexpr (sizeof(REAL) == 4)   // rounded to 11 bits
                top = __uint_as_float(__float_as_uint(x) + 0x1000
                                      & 0xffffe000);
            else
                top = x;
            low[i / PAIR][i % PAIR] = x - top;
        }
    }
};

// Add a product to component f of c. In fp64 the product of the second
// field is added to component partner(f, N). Tensor cores of Hopper
// reach their full rate only with 16 rows; earlier ones support 8 rows.
template <int N>
__device__ void mma(double (&c)[1][2][N], int f,
                    const double (&a)[2][1], const double (&b)[1])
{
    const int g = partner(f, N);
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
        "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+d"(c[0][0][f]), "+d"(c[0][1][f]),
          "+d"(c[0][0][g]), "+d"(c[0][1][g])
        : "d"(a[0][0]), "d"(a[1][0]), "d"(b[0]));
#else
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
        "{%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(c[0][0][f]), "+d"(c[0][1][f]) : "d"(a[0][0]), "d"(b[0]));
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
        "{%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(c[0][0][g]), "+d"(c[0][1][g]) : "d"(a[1][0]), "d"(b[0]));
#endif
}

template <int N>
__device__ void mma(float (&c)[2][2][N], int f, const float (&a)[2][2],
                    const float (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0][0][f]), "+f"(c[0][1][f]),
          "+f"(c[1][0][f]), "+f"(c[1][1][f])
        : "r"(__float_as_uint(a[0][0])), "r"(__float_as_uint(a[1][0])),
          "r"(__float_as_uint(a[0][1])), "r"(__float_as_uint(a[1][1])),
          "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

// Component f of c += field times matrix, for NODES tiles of nodes.
template <int N>
__device__ void multiply(REAL (&c)[NODES][HALVES][2][N], int f,
                         const Operand<2>& field,
                         const Operand<NODES>& matrix)
{
#pragma unroll
    for (int i = 0; i < NODES; ++i) {
        if constexpr (sizeof(REAL) == 4) {
            mma(c[i], f, field.low, matrix.high[i]);
            mma(c[i], f, field.high, matrix.low[i]);
        }
        mma(c[i], f, field.high, matrix.high[i]);
    }
}

// The same, times a sign. Tensor cores truncate fp32 sums, which would
// make long sums too small. So each product starts at zero, and is
// rounded when it is added.
template <int N>
__device__ void add_product(REAL (&c)[NODES][HALVES][2][N], int f,
                            int sign, const Operand<2>& field,
                            const Operand<NODES>& matrix)
{
    if constexpr (sizeof(REAL) == 4) {
        REAL sum[NODES][HALVES][2][1] = {};
        multiply(sum, 0, field, matrix);
#pragma unroll
        for (int i = 0; i < NODES * HALVES * 2; ++i)
            c[i / 2 / HALVES][i / 2 % HALVES][i % 2][f] +=
                sign * sum[i / 2 / HALVES][i / 2 % HALVES][i % 2][0];
    } else {
#pragma unroll
        for (int i = 0; i < NODES; ++i) {
            const REAL entry[1] = {sign * matrix.high[i][0]};
            mma(c[i], f, field.high, entry);
        }
    }
}
