// Step 5: at every point, raise the curls to degree N, add the lifted
// flux of the four faces, and update.

// Curls in degree N: the sum over j of a_j times the curl of degree
// N - 1 at a - e_j.
__device__ void raise(REAL (&rate)[6], const COUPLE* curls,
                      const Point& point)
{
    const COUPLE* const curl = curls + point.lower;   // at a - e_0
    const COUPLE* const from[4]
        = {curl, curl - 1, curl - point.row, curl - point.up};
#pragma unroll
    for (int j = 0; j < 4; ++j)
        if (point.a[j] > 0) {
            const REAL factor = point.a[j];
#pragma unroll
            for (int c = 0; c < 3; ++c) {
                const COUPLE pair = from[j][c * (ELEMENTS * LOWER)];
                rate[c] += factor * pair.x;
                rate[3 + c] += factor * pair.y;
            }
        }
}

// Add the lifted flux of the four faces, times a!.
__device__ void add_faces(REAL (&rate)[6], const REAL* planes,
                          uint2 word, const REAL* shape)
{
    const unsigned from[4] = {word.x & LOW, word.x >> HIGH,
                              word.y & LOW, word.y >> HIGH};
#pragma unroll
    for (int f = 0; f < 4; ++f) {
        alignas(16) REAL turn[4];
        read(turn, shape + 4 * f);
        const REAL* const plane
            = planes + f * (ELEMENTS * PLANE) + from[f];
        add_face(rate, f, turn, plane[0], plane[PLANES / 2 * PLANE]);
    }
}

__device__ void update(const Room& room, unsigned lane, unsigned first,
                       const unsigned* points, const unsigned* slices,
                       const REAL* weights, REAL* res, REAL* newer,
                       REAL a, REAL b, REAL dt)
{
    unsigned e = lane / NP, n = lane % NP;
#pragma unroll DEPTH
    for (unsigned i = lane; i < ELEMENTS * NP;
         i += LANES, advance<NP>(e, n)) {
        const size_t place = (size_t)(first + e) * (3 * PAIRS) + n;
        COUPLE* const kept = (COUPLE*)res + place;
        COUPLE* const next = (COUPLE*)newer + place;
        COUPLE old[3] = {};
        if (a != 0)   // read only once: leave the cache to u
#pragma unroll
            for (int c = 0; c < 3; ++c)
                old[c] = __ldcs(kept + c * PAIRS);

        // Contravariant components of J du/dt; the metric makes
        // covariant ones of du/dt.
        const REAL weight = weights[n];
        const REAL* const shape = room.shape + e * GEOMETRY;
        REAL rate[6] = {}, lifted[6] = {}, change[6];
        alignas(16) REAL metric[8];
        raise(rate, room.rates + e * LOWER, points[n]);
        add_faces(lifted, room.planes + e * PLANE,
                  ((const uint2*)slices)[n], shape);
#pragma unroll
        for (int c = 0; c < 6; ++c)
            rate[c] += weight * lifted[c];
        read(metric, shape + METRIC);
        lower(change, rate, metric);

        // res = a res + dt du/dt, new = u + b res; or, FACTORED,
        // res = a res + b u + dt du/dt alone.
#pragma unroll
        for (int c = 0; c < 3; ++c) {
            COUPLE v = room.state[(3 * e + c) * PAIRS + n];
            old[c].x = a * old[c].x + dt * change[c];
            old[c].y = a * old[c].y + dt * change[3 + c];
            if (FACTORED)
                old[c].x += b * v.x, old[c].y += b * v.y;
            else
                v.x += b * old[c].x, v.y += b * old[c].y;
            __stcs(kept + c * PAIRS, old[c]);
            if (!FACTORED && b != 0)
                __stcs(next + c * PAIRS, v);
        }
    }
}
