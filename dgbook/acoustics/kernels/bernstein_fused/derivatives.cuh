// Step 3: derivatives of degree N - 1, without the factor N: J div v,
// and the derivatives of p along the edges from vertex 0.

__device__ void derive(VECTOR* room, unsigned lane,
                       const unsigned* corners)
{
    unsigned e = lane / LOWER, n = lane % LOWER;
#pragma unroll 1
    for (unsigned i = lane; i < ELEMENTS * LOWER;
         i += LANES, advance<LOWER>(e, n)) {
        // The state at the four points around a point of degree N - 1.
        const uint2 word = ((const uint2*)corners)[n];
        const VECTOR* const state = room + STATE + e * NP;
        alignas(16) REAL v0[4], v1[4], v2[4], v3[4];
        load(v0, at(state, word.x & LOW));
        load(v1, at(state, word.x & LOW) + 1);
        load(v2, at(state, word.x >> HIGH));
        load(v3, at(state, word.y));
        const REAL inner =
            v1[1] + v2[2] + v3[3] - (v0[1] + v0[2] + v0[3]);
        alignas(16) const REAL rate[4] = {
            inner, v1[0] - v0[0], v2[0] - v0[0], v3[0] - v0[0]};
        store(room + RATE + i, rate);
    }
}
