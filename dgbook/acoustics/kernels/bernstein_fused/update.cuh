// Step 7: at every point, elevate the derivatives to degree N, add the
// lifted flux of the four faces, and update.

// Derivatives of degree N, from four of degree N - 1.
__device__ void elevate(REAL (&d)[4], const VECTOR* derivatives,
                        const uint4& word, const REAL (&factor)[4])
{
    const unsigned from[4] = {word.x & LOW, word.x >> HIGH,
                              word.y & LOW, word.y >> HIGH};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        alignas(16) REAL x[4];
        load(x, at(derivatives, from[j]));
#pragma unroll
        for (int c = 0; c < 4; ++c)
            d[c] += factor[j] * x[c];
    }
}

// The lifted flux of each of the four faces.
__device__ void gather(REAL (&s)[4], const VECTOR* slices,
                       const uint4& word, const REAL (&weight)[4])
{
    const unsigned from[4] = {word.z & LOW, word.z >> HIGH,
                              word.w & LOW, word.w >> HIGH};
#pragma unroll
    for (int f = 0; f < 4; ++f) {
        const VECTOR* slice = slices + f / WIDTH * QUADS;
        s[f] = weight[f] * *(const REAL*)at(slice, from[f]);
    }
}

__device__ void update(const VECTOR* room, unsigned lane,
                       unsigned first, const unsigned* rows,
                       const REAL* weights, REAL* res, REAL* newer,
                       REAL a, REAL b, REAL dt)
{
    const size_t start = (size_t)first * SIZE;
    unsigned e = lane / NP, n = lane % NP;
#pragma unroll DEPTH
    for (unsigned i = lane; i < ELEMENTS * NP;
         i += LANES, advance<NP>(e, n)) {
        // The positions of the numbers that this point needs.
        const uint4 word = ((const uint4*)rows)[n];
        const size_t place = start + i + e * (SIZE - NP);
        VECTOR* const kept = (VECTOR*)res + place;
        VECTOR* const next = (VECTOR*)newer + place;
        alignas(16) REAL old[4] = {}, factor[4], weight[4];
        alignas(16) REAL d[4] = {}, s[4], v[4];
        if (a != 0)   // read only once: leave the cache to u
#pragma unroll
            for (int k = 0; k < WORDS; ++k)
                ((VECTOR*)old)[k] = __ldcs(kept + k * NP);
        fields(factor, (const VECTOR*)weights + n, NP);
        fields(weight, (const VECTOR*)weights + WORDS * NP + n, NP);
        elevate(d, room + RATE + e * LOWER, word, factor);
        gather(s, room + SLICE + e * NP, word, weight);

        // du/dt: the lifted flux also changes grad p; then the metric.
        const VECTOR* const geometry = room + SHAPE + e * GEOMETRY;
        const REAL* const g = (const REAL*)geometry;
        const REAL zero = g[8] * s[0];
        const REAL x = d[1] + zero - g[9] * s[1];
        const REAL y = d[2] + zero - g[10] * s[2];
        const REAL z = d[3] + zero - g[11] * s[3];
        alignas(16) const REAL rate[4] = {
            g[18] * d[0] + ((s[0] + s[1]) + (s[2] + s[3])),
            g[12] * x + g[13] * y + g[14] * z,
            g[13] * x + g[15] * y + g[16] * z,
            g[14] * x + g[16] * y + g[17] * z};

        // res = a res + dt du/dt, new = u + b res; or, FACTORED,
        // res = a res + b u + dt du/dt alone.
        load(v, room + STATE + i);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            old[c] = a * old[c] + dt * rate[c];
            if (FACTORED)
                old[c] += b * v[c];
            else
                v[c] += b * old[c];
        }
#pragma unroll
        for (int k = 0; k < WORDS; ++k) {
            __stcs(kept + k * NP, ((VECTOR*)old)[k]);
            if (!FACTORED && b != 0)
                __stcs(next + k * NP, ((VECTOR*)v)[k]);
        }
    }
}
