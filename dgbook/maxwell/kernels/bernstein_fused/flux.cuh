// Step 3: the upwind flux, two numbers per face point.

// E and Z H along the two tangents of a face, which lead from its first vertex to the
// others. A word holds the point and the three vertices; vertex 0 is where edges begin.
__device__ Tangential tangential(const COUPLE* element, unsigned word)
{
    const COUPLE* const pairs = element + (word & LOW);
    COUPLE v[3] = {};
#pragma unroll
    for (int i = 0; i < 3; ++i)
        if (const unsigned vertex = word >> (HIGH + 2 * i) & 3; vertex > 0)
            v[i] = pairs[(vertex - 1) * PAIRS];
    return {v[1].x - v[0].x, v[2].x - v[0].x, v[1].y - v[0].y, v[2].y - v[0].y};
}

// At all face points of the team's elements: a thread has point j of a face, then
// another one.
__device__ void compute_flux(const Room& room, unsigned lane, const REAL* u, const REAL* data,
                             const unsigned* meeting, const REAL* boundary, unsigned faces)
{
    unsigned face = lane / NFP, j = lane % NFP;
#pragma unroll DEPTH
    for (unsigned i = lane; i < 4 * ELEMENTS * NFP;
         i += LANES, advance<NFP, 4 * ELEMENTS>(face, j)) {
        const unsigned e = face / 4, f = face % 4;
        const unsigned way = room.link[face] % 32, neighbor = room.link[face] / 32;

        // From either side; way 6 f is to meet a face like my own.
        const Tangential inner
            = tangential(room.state + e * (3 * PAIRS), meeting[6 * f * NFP + j]);
        Tangential outer;
        if (way < GHOST)
            outer = tangential((const COUPLE*)u + (size_t)neighbor * (3 * PAIRS),
                               meeting[way * NFP + j]);
        else
            outer = outside(inner, data, boundary, neighbor, j, faces);

        // Both numbers go where the threads that lift them will look.
        alignas(16) REAL turn[4];   // and Z^- / (Z^- + Z^+)
        read(turn, room.shape + e * GEOMETRY + 4 * f);
        const COUPLE both = upwind(inner, outer, turn, turn[3], f);
        REAL* const plane = room.planes + (f * ELEMENTS + e) * PLANE + j;
        plane[0] = both.x, plane[PLANES / 2 * PLANE] = both.y;
    }
}
