// Step 2: J curl H and -J curl E in degree N - 1, without the factor
// N / 2. Control points of a derivative are differences of neighboring
// control points.
//
// One thread per point b + e_0 of degree N. Then neighboring threads
// read neighboring points, and they write neighboring points.

__device__ void derive(const Room& room, unsigned lane,
                       const unsigned* points)
{
    unsigned e = lane / NP, n = lane % NP;
#pragma unroll 1
    for (unsigned i = lane; i < ELEMENTS * NP;
         i += LANES, advance<NP>(e, n)) {
        const Point point(points[n]);
        if (point.a[0] == 0)
            continue;
        const COUPLE* const x = room.state + e * (3 * PAIRS) + n;
        const COUPLE *const y = x + PAIRS, *const z = y + PAIRS;
        const COUPLE x_0 = x[0], y_0 = y[0], z_0 = z[0];
        const COUPLE y_1 = y[1], z_1 = z[1];
        const COUPLE x_2 = x[point.row], z_2 = z[point.row];
        const COUPLE x_3 = x[point.up], y_3 = y[point.up];
        COUPLE* const rate = room.rates + e * LOWER + point.lower;
        rate[0] = {(z_2.y - z_0.y) - (y_3.y - y_0.y),
                   (y_3.x - y_0.x) - (z_2.x - z_0.x)};
        rate[ELEMENTS * LOWER] = {(x_3.y - x_0.y) - (z_1.y - z_0.y),
                                  (z_1.x - z_0.x) - (x_3.x - x_0.x)};
        rate[2 * ELEMENTS * LOWER]
            = {(y_1.y - y_0.y) - (x_2.y - x_0.y),
               (x_2.x - x_0.x) - (y_1.x - y_0.x)};
    }
}
