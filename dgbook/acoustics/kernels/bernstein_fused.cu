// One Runge-Kutta stage of Bernstein-Bezier DG for acoustic waves in one pass:
// res = a res + dt du/dt (res is not read if a = 0), new = u + b res (not
// written if b = 0).
//
// The state holds four numbers a point, p and J grad(l_m) . v for m = 1, 2, 3,
// where l_m are the barycentric coordinates; the one for m = 0 is minus their
// sum. An element has the first VECTORs of all its points, then, in fp64, the
// second ones of all. A divergence takes one derivative of each, the normal
// velocities on a face are a component on either side, and grad p enters by
// three differences.
//
// A team of LANES threads works on ELEMENTS elements, whose points are dealt to
// its threads; TEAMS teams make a block, of which a multiprocessor shall hold
// BLOCKS. Where a team is a warp nobody waits for other warps.
//
// The points of a face are numbered from its last vertex, row by row of 1, 2,
// 3, ... points. Then a slice of the lift comes from the one before by
//
//     t_j = t_j + t_{j + r + 1} + t_{j + r + 2},   j in row r,
//
// whatever the degree: a thread keeps its t_j and loads the other two. There are
// no factors because t_j is the control point times 2 (i + 1)! c! (-1)^i, where
// c is the multi-index of j in slice i; `weights` take that back. `squares` and
// `weights` hold the first VECTORs of all points, then the second ones, and so on.
//
// Macros: REAL, VECTOR (16 bytes of them), ORDER, LANES, ELEMENTS, TEAMS,
// BLOCKS, UNROLL (turns of the last loop that are unrolled).

__device__ constexpr int triangle(int n) { return (n + 1) * (n + 2) / 2; }
__device__ constexpr int tetrahedron(int n) { return (n + 1) * (n + 2) * (n + 3) / 6; }

constexpr int NP = tetrahedron(ORDER), NFP = triangle(ORDER);
constexpr int LOWER = tetrahedron(ORDER - 1);   // points of degree N - 1
constexpr int WIDTH = 16 / sizeof(REAL);        // numbers in a VECTOR
constexpr int PARTS = 4 / WIDTH;                // VECTORs that four numbers fill
constexpr int SIZE = NP * PARTS;                // and the state of an element
constexpr int GEOMETRY = 20 / WIDTH;            // VECTORs an element
constexpr int THREADS = TEAMS * LANES, DEPTH = UNROLL;   // pragmas take no macro
constexpr int ROUNDS = (ELEMENTS * NFP + LANES - 1) / LANES;
constexpr unsigned GHOST = 24, LOW = 65535, HIGH = 16;   // halves of a word

// What a team has in shared memory, in quadruples of numbers: derivatives of
// degree N - 1, fluxes on the faces (of four faces at a point), the state, and
// the slices of the lift. Of numbers of 8 bytes the second halves lie behind
// all the first ones, so that neighboring threads read neighboring vectors.
constexpr int RATE = 0, FLUX = RATE + ELEMENTS * LOWER;
constexpr int STATE = FLUX + ELEMENTS * NFP, SLICE = STATE + ELEMENTS * NP;
constexpr int QUADS = SLICE + ELEMENTS * NP;
// Behind them, in VECTORs: geometry and links.
constexpr int SHAPE = PARTS * QUADS, LINK = SHAPE + ELEMENTS * GEOMETRY;
constexpr int TEAM = LINK + ELEMENTS;

// Where face f is in the quadruples of slice i. In the end a point takes one
// number from each of four places; were it always the same of a quadruple,
// threads would meet in a quarter of the banks.
__device__ constexpr int turned(int f, int i)
{
    return f / WIDTH * WIDTH + (f + i) % WIDTH;
}

__device__ void read(REAL (&to)[4], const VECTOR* from, int apart = QUADS)
{
#pragma unroll
    for (int i = 0; i < PARTS; ++i)
        ((VECTOR*)to)[i] = from[i * apart];
}

__device__ void write(VECTOR* to, const REAL (&from)[4])
{
#pragma unroll
    for (int i = 0; i < PARTS; ++i)
        to[i * QUADS] = ((const VECTOR*)from)[i];
}

// Past the registers where the device can.
__device__ void fetch(VECTOR* to, const VECTOR* from)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
#else
    *to = *from;
#endif
}

// Where a position in a table, which counts bytes, is in shared memory.
__device__ const VECTOR* at(const VECTOR* array, unsigned position)
{
    return (const VECTOR*)((const char*)array + position);
}

// From a team's work on point n of element e to its next one, of SIZE a element.
template <int SIZE> __device__ void advance(unsigned& e, unsigned& n)
{
    n += LANES % SIZE, e += LANES / SIZE;
    if (ELEMENTS > 1 && n >= SIZE)
        n -= SIZE, ++e;
}

__device__ void meet()
{
    if (LANES == 32)
        __syncwarp();
    else
        __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) bernstein_fused(
    const REAL* __restrict__ u, const REAL* __restrict__ data,
    const unsigned* __restrict__ links, const unsigned* __restrict__ opposite,
    const unsigned* __restrict__ nodes, const REAL* __restrict__ squares,
    const unsigned* __restrict__ corners, const unsigned* __restrict__ rows,
    const REAL* __restrict__ weights, const REAL* __restrict__ geometry,
    const REAL* __restrict__ boundary, REAL* __restrict__ res,
    REAL* __restrict__ newer, unsigned faces, REAL a, REAL b, REAL dt)
{
    extern __shared__ VECTOR memory[];
    VECTOR* const mine = memory + threadIdx.x / LANES * TEAM;
    const unsigned lane = threadIdx.x % LANES;
    const unsigned first = (blockIdx.x * TEAMS + threadIdx.x / LANES) * ELEMENTS;
    const size_t start = (size_t)first * (NP * PARTS);
    const VECTOR* const all = (const VECTOR*)u;

    // 1. Fetch the team's states, geometry and links, each contiguous, at once,
    // and tell the L2 cache that res will be wanted.
#pragma unroll
    for (unsigned k = 0; k < ELEMENTS * NP * PARTS; k += LANES)
        if (const unsigned i = k + lane; i < ELEMENTS * NP * PARTS)
            fetch(mine + STATE + i + i / NP % PARTS * (QUADS - NP) - i / SIZE * (SIZE - NP),
                  all + start + i);
#pragma unroll
    for (unsigned k = 0; k < ELEMENTS * GEOMETRY; k += LANES)
        if (const unsigned i = k + lane; i < ELEMENTS * GEOMETRY)
            fetch(mine + SHAPE + i, (const VECTOR*)geometry + first * GEOMETRY + i);
#pragma unroll
    for (unsigned k = 0; k < ELEMENTS; k += LANES)
        if (const unsigned i = k + lane; i < ELEMENTS)
            fetch(mine + LINK + i, (const VECTOR*)links + first + i);
#if __CUDA_ARCH__
    for (unsigned i = lane * 8; a != 0 && i < ELEMENTS * NP * PARTS; i += LANES * 8)
        asm volatile("prefetch.global.L2 [%0];" :: "l"((VECTOR*)res + start + i));
#endif
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    meet();

    // 2. What the neighbors have at point j of the four faces of element e; it
    // is on its way while step 3 is done.
    unsigned element[ROUNDS], point[ROUNDS], link[ROUNDS][4];
    alignas(16) REAL far[ROUNDS][4][4];
#pragma unroll
    for (int i = 0; i < ROUNDS; ++i) {
        const unsigned q = lane + i * LANES;
        element[i] = q < ELEMENTS * NFP ? q / NFP : ELEMENTS - 1;
        point[i] = q < ELEMENTS * NFP ? q % NFP : NFP;   // NFP: none
        const unsigned j = point[i] < NFP ? point[i] : 0;
        const uint4 four = ((const uint4*)(mine + LINK))[element[i]];
        link[i][0] = four.x, link[i][1] = four.y, link[i][2] = four.z, link[i][3] = four.w;
#pragma unroll
        for (int f = 0; f < 4; ++f) {
            const unsigned way = link[i][f] % 32;
            const unsigned other = way < GHOST ? link[i][f] / 32 : 0;
            const size_t node = (size_t)other * SIZE + opposite[way * NFP + j];
            read(far[i][f], all + node, NP);
        }
    }

    // 3. Derivatives in degree N - 1, without the factor N: J div v, and the
    // derivatives of p along the edges from vertex 0.
    unsigned e = lane / LOWER, n = lane % LOWER;
#pragma unroll 1
    for (unsigned i = lane; i < ELEMENTS * LOWER; i += LANES, advance<LOWER>(e, n)) {
        const uint2 word = ((const uint2*)corners)[n];
        const VECTOR* const own = mine + STATE + e * NP;
        alignas(16) REAL v0[4], v1[4], v2[4], v3[4];
        read(v0, at(own, word.x & LOW));
        read(v1, at(own, word.x & LOW) + 1);
        read(v2, at(own, word.x >> HIGH));
        read(v3, at(own, word.y));
        const REAL inner = v1[1] + v2[2] + v3[3] - (v0[1] + v0[2] + v0[3]);
        alignas(16) const REAL rate[4] = {inner, v1[0] - v0[0], v2[0] - v0[0], v3[0] - v0[0]};
        write(mine + RATE + i, rate);
    }

    // 4. kappa Fs s times c! on the four faces.
    alignas(16) REAL t[ROUNDS][4], square[ROUNDS][4];
    unsigned row[ROUNDS];
#pragma unroll
    for (int i = 0; i < ROUNDS; ++i)
        if (point[i] < NFP) {
            const unsigned k = element[i], j = point[i];
            const uint4 word = ((const uint4*)nodes)[j];
            const unsigned place[4] = {word.x & LOW, word.y & LOW, word.z & LOW, word.w & LOW};
            row[i] = word.x >> HIGH;
            const REAL* const shape = (const REAL*)(mine + SHAPE + k * GEOMETRY);
            read(square[i], (const VECTOR*)squares + j, NFP);
#pragma unroll
            for (int f = 0; f < 4; ++f) {
                alignas(16) REAL near[4];
                read(near, at(mine + STATE + k * NP, place[f]));
                const unsigned way = link[i][f] % 32;
                const REAL(&v)[4] = far[i][f];
                const REAL inward = f ? near[f] : -(near[1] + near[2] + near[3]);
                REAL outer = v[0], out = way < 6 ? -(v[1] + v[2] + v[3])
                                       : way < 12 ? v[1] : way < 18 ? v[2] : v[3];
                if (way == GHOST) {   // the boundary: u^+ = M u^- + g
                    const unsigned face = link[i][f] / 32;
                    const REAL* const m = boundary + face * 5;
                    const REAL* const g = data + (size_t)face * NFP + NFP - 1 - j;
                    const size_t field = (size_t)faces * NFP;
                    outer = m[0] * near[0] + g[0];
                    out = m[2] * g[field] + m[3] * g[2 * field] + m[4] * g[3 * field]
                        - m[1] * inward;
                }
                t[i][f] = square[i][3] * (shape[f] * (outer - near[0])
                                          - shape[4 + f] * (out + inward));
            }
            write(mine + FLUX + lane + i * LANES, t[i]);
        }
    meet();

    // 5. Slice 0: L_0, from six neighbors on the face. Where there is none, its
    // factor is zero; what is read then is another number, before the first
    // flux a derivative and behind the last a state.
#pragma unroll
    for (int i = 0; i < ROUNDS; ++i)
        if (point[i] < NFP) {
            const VECTOR* const own = mine + FLUX + lane + i * LANES;
            const VECTOR* const above = own - row[i];
            const VECTOR* const below = own + row[i];
            alignas(16) REAL x[6][4];
            read(x[0], own - 1), read(x[1], above - 1);
            read(x[2], own + 1), read(x[3], above);
            read(x[4], below + 1), read(x[5], below + 2);
            const REAL(&c)[4] = square[i];
            const REAL total = c[0] + c[1] + c[2] + (2 * ORDER + 3);
#pragma unroll
            for (int f = 0; f < 4; ++f) {
                t[i][f] = total * t[i][f] + c[0] * (x[0][f] + x[1][f]);
                t[i][f] += c[1] * (x[2][f] + x[3][f]);
                t[i][f] += c[2] * (x[4][f] + x[5][f]);
            }
            write(mine + SLICE + element[i] * NP + point[i], t[i]);
        }

    // 6. Slice by slice through the tetrahedron, the four faces at once.
#pragma unroll
    for (int n = ORDER - 1; n >= 0; --n) {
        meet();
#pragma unroll
        for (int i = 0; i < ROUNDS; ++i)
            if (point[i] < triangle(n)) {
                VECTOR* const slice = mine + SLICE + element[i] * NP + point[i];
                const VECTOR* const before = slice + NP - tetrahedron(n + 1) + row[i];
                alignas(16) REAL x[4], y[4], sum[4];
                read(x, before + 1), read(y, before + 2);
#pragma unroll
                for (int f = 0; f < 4; ++f) {
                    const int old = turned(f, ORDER - n - 1);
                    t[i][f] += x[old] + y[old];
                    sum[turned(f, ORDER - n)] = t[i][f];
                }
                write(slice + NP - tetrahedron(n), sum);
            }
    }
    meet();

    // 7. At every point: raise the derivatives to degree N, add what was lifted
    // from the four faces, and update.
    e = lane / NP, n = lane % NP;
#pragma unroll DEPTH
    for (unsigned i = lane; i < ELEMENTS * NP; i += LANES, advance<NP>(e, n)) {
        const uint4 word = ((const uint4*)rows)[n];
        const size_t own = start + i + e * (SIZE - NP);
        VECTOR* const kept = (VECTOR*)res + own;
        VECTOR* const next = (VECTOR*)newer + own;
        alignas(16) REAL old[4] = {}, factor[4], w[4], d[4] = {}, s[4], v[4];
        if (a != 0)
#pragma unroll
            for (int k = 0; k < PARTS; ++k)
                ((VECTOR*)old)[k] = __ldcs(kept + k * NP);   // not wanted again
        read(factor, (const VECTOR*)weights + n, NP);
        read(w, (const VECTOR*)weights + PARTS * NP + n, NP);
        const unsigned from[4] = {word.x & LOW, word.x >> HIGH, word.y & LOW, word.y >> HIGH};
        const unsigned lifted[4] = {word.z & LOW, word.z >> HIGH, word.w & LOW, word.w >> HIGH};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            alignas(16) REAL x[4];
            read(x, at(mine + RATE + e * LOWER, from[j]));
#pragma unroll
            for (int c = 0; c < 4; ++c)
                d[c] += factor[j] * x[c];
        }
#pragma unroll
        for (int f = 0; f < 4; ++f)
            s[f] = w[f] * *(const REAL*)at(mine + SLICE + e * NP + f / WIDTH * QUADS, lifted[f]);
        const REAL* const g = (const REAL*)(mine + SHAPE + e * GEOMETRY);
        const REAL zero = g[8] * s[0];
        const REAL x = d[1] + zero - g[9] * s[1];
        const REAL y = d[2] + zero - g[10] * s[2];
        const REAL z = d[3] + zero - g[11] * s[3];
        alignas(16) const REAL rate[4] = {g[18] * d[0] + ((s[0] + s[1]) + (s[2] + s[3])),
                              g[12] * x + g[13] * y + g[14] * z,
                              g[13] * x + g[15] * y + g[16] * z,
                              g[14] * x + g[16] * y + g[17] * z};
        read(v, mine + STATE + i);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            old[c] = a * old[c] + dt * rate[c];
            v[c] += b * old[c];
        }
#pragma unroll
        for (int k = 0; k < PARTS; ++k) {
            __stcs(kept + k * NP, ((VECTOR*)old)[k]);
            if (b != 0)
                __stcs(next + k * NP, ((VECTOR*)v)[k]);
        }
    }
}
