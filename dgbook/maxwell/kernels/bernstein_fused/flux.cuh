// Step 3: the upwind flux, two numbers per face point.

// E and Z H along the two tangents of a face, which lead from its first
// vertex to its second and its third one. `word` holds the number of
// the face point and the face's three vertices. The fields are known
// along the edges from vertex 0 to the other vertices, and along a
// tangent they are differences of those.
__device__ Tangential tangential(const COUPLE* element, unsigned word)
{
    const COUPLE* const pairs = element + (word & LOW);
    COUPLE v[3] = {};
#pragma unroll
    for (int i = 0; i < 3; ++i)
        if (const unsigned vertex = word >> (HIGH + 2 * i) & 3;
            vertex > 0)
            v[i] = pairs[(vertex - 1) * PAIRS];
    return {v[1].x - v[0].x, v[2].x - v[0].x,
            v[1].y - v[0].y, v[2].y - v[0].y};
}

// The flux at all face points of the team's elements. A thread takes
// one point after another, point j of face f of element e.
__device__ void compute_flux(const Room& room, unsigned lane,
                             const REAL* u, const REAL* data,
                             const unsigned* meeting,
                             const REAL* boundary, unsigned faces)
{
    unsigned face = lane / NFP, j = lane % NFP;
#pragma unroll DEPTH
    for (unsigned i = lane; i < 4 * ELEMENTS * NFP;
         i += LANES, advance<NFP, 4 * ELEMENTS>(face, j)) {
        const unsigned e = face / 4, f = face % 4;
        const unsigned link = room.link[face];
        const unsigned way = link % 32, neighbor = link / 32;

        // The fields of both sides. In way 6 f, the neighbor's points
        // and vertices have this face's own numbers.
        const Tangential inner = tangential(
            room.state + e * (3 * PAIRS), meeting[6 * f * NFP + j]);
        Tangential outer;
        if (way < GHOST) {
            const COUPLE* const across
                = (const COUPLE*)u + (size_t)neighbor * (3 * PAIRS);
            outer = tangential(across, meeting[way * NFP + j]);
        } else {
            outer = outside(inner, data, boundary, neighbor, j, faces);
        }

        // Store the two numbers, each in its plane of this face.
        alignas(16) REAL turn[4];   // the last is Z^- / (Z^- + Z^+)
        read(turn, room.shape + e * GEOMETRY + 4 * f);
        const COUPLE both = upwind(inner, outer, turn, turn[3], f);
        REAL* const plane
            = room.planes + (f * ELEMENTS + e) * PLANE + j;
        plane[0] = both.x, plane[PLANES / 2 * PLANE] = both.y;
    }
}
