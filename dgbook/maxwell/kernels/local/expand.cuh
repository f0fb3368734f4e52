// Step 2: the expansion at the beginning of a step. Term J has degree
// N - J, and is the curl of the term before it.

__device__ constexpr int modes(int degree)
{
    return (degree + 1) * (degree + 2) * (degree + 3) / 6;
}

constexpr int LOWER = modes(ORDER - 1);

__device__ REAL* element(VECTOR* terms, unsigned e)
{
    return (REAL*)(terms + e * STATE);
}

// Columns are read two at a time: those of an odd number of modes end
// with zeros.
template <int MODES> __device__ void pad(VECTOR* terms)
{
    if constexpr (MODES % 2)
        for (unsigned i = threadIdx.x; i < ROWS * 6; i += THREADS)
            element(terms, i / 6)[MODES * 6 + i % 6] = 0;
}

// Term J of the block's elements. A thread takes one or two modes of an
// element, and others after them.
template <int J>
__device__ void next_term(const Shared& shared, VECTOR* from,
                          VECTOR* to, const REAL* derivative)
{
    constexpr int HIGH = modes(ORDER - J + 1), LOW = modes(ORDER - J);
    constexpr int TILE = LOW > 1 ? 2 : 1;
    constexpr int PARTS = (LOW + TILE - 1) / TILE;
    for (unsigned p = threadIdx.x; p < ROWS * PARTS; p += THREADS) {
        const unsigned e = p / PARTS, n = p % PARTS;
        const REAL* values = element(from, e);
        const COUPLE* entries = (const COUPLE*)derivative + n;
        REAL rates[TILE][6] = {};
#pragma unroll DEPTH
        for (int m = 0; m < HIGH;
             m += 2, values += 12, entries += 3 * LOWER) {
            COUPLE D[TILE][3];
#pragma unroll
            for (int i = 0; i < TILE * 3; ++i)
                D[i / 3][i % 3] =
                    entries[i % 3 * LOWER + i / 3 * PARTS];
            alignas(16) REAL v[12];
            read(v, values);
#pragma unroll
            for (int i = 0; i < TILE * 3; ++i) {
                const int x = i % 3, y = (x + 1) % 3, z = (x + 2) % 3;
                const COUPLE a = D[i / 3][y], b = D[i / 3][z];
                REAL(&rate)[6] = rates[i / 3];
                rate[x] += a.x * v[3 + z] - b.x * v[3 + y];
                rate[3 + x] += b.x * v[y] - a.x * v[z];
                rate[x] += a.y * v[9 + z] - b.y * v[9 + y];
                rate[3 + x] += b.y * v[6 + y] - a.y * v[6 + z];
            }
        }
#pragma unroll
        for (int i = 0; i < TILE; ++i)
            if (n + i * PARTS < LOW)
                lower(element(to, e) + (n + i * PARTS) * 6, rates[i],
                      shared.shape + e * GEOMETRY);
    }
    pad<LOW>(to);
}

__device__ void add(Fields& sum, int i, REAL weight,
                    const REAL (&value)[6])
{
#pragma unroll
    for (int x = 0; x < 6; ++x)
        sum[i][x] += weight * value[x];
}

// Terms J and after. Term J - 1 is in `from`, where the last one then
// is in the end, or in `to`.
template <int J>
__device__ void add_terms(Fields& end, Fields& whole, Fields& half,
                          const Place& place, const Shared& shared,
                          VECTOR* from, VECTOR* to,
                          const REAL* derivative, const REAL* weights)
{
    if constexpr (J <= ORDER) {
        next_term<J>(shared, from, to, derivative);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < NODES; ++i) {
            const unsigned n = place.lane + i * LANES;
            if (n < modes(ORDER - J)) {
                REAL value[6];
                const COUPLE* at =
                    (const COUPLE*)element(to, place.row) + n * 3;
#pragma unroll
                for (int x = 0; x < 3; ++x)
                    value[2 * x] = at[x].x, value[2 * x + 1] = at[x].y;
                add(end, i, weights[3 * J], value);
                add(whole, i, weights[3 * J + 1], value);
                add(half, i, weights[3 * J + 2], value);
            }
        }
        add_terms<J + 1>(end, whole, half, place, shared, to, from,
                         derivative, weights);
    }
}

// Put numbers of this thread's modes or nodes where its element is.
__device__ void put(VECTOR* terms, const Fields& values,
                    const Place& place)
{
#pragma unroll
    for (int i = 0; i < NODES; ++i) {
        const unsigned n = place.lane + i * LANES;
        COUPLE* to = (COUPLE*)element(terms, place.row) + n * 3;
        if (place.counts() && n < NP)
#pragma unroll
            for (int x = 0; x < 3; ++x)
                to[x] = {values[i][2 * x], values[i][2 * x + 1]};
    }
}

// From the state at the beginning of the step: the polynomial at its
// end, which takes the state's place, the integral over the step, and
// that over its first half.
__device__ void sum_expansion(Fields& s, Fields& whole, Fields& half,
                              const Place& place, const Shared& shared,
                              const REAL* derivative,
                              const REAL* weights)
{
    put(shared.state, s, place);
    pad<NP>(shared.state);
#pragma unroll
    for (int i = 0; i < NODES * 6; ++i) {
        const REAL value = s[i / 6][i % 6];
        s[i / 6][i % 6] = weights[0] * value;
        whole[i / 6][i % 6] = weights[1] * value;
        half[i / 6][i % 6] = weights[2] * value;
    }
    __syncthreads();
    add_terms<1>(s, whole, half, place, shared, shared.state,
                 shared.rate, derivative, weights);
}
