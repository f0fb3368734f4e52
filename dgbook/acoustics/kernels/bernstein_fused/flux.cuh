// Step 4: the flux kappa Fs s times b!, on the four faces.

__device__ void compute_flux(FacePoints& on_faces, VECTOR* room,
                             unsigned lane, const unsigned* nodes,
                             const REAL* squares, const REAL* data,
                             const REAL* boundary, unsigned faces)
{
#pragma unroll
    for (int i = 0; i < ROUNDS; ++i)
        if (on_faces.point[i] < NFP) {
            // The point's place on each face, and its element's
            // geometry.
            const unsigned e = on_faces.element[i];
            const unsigned j = on_faces.point[i];
            const uint4 word = ((const uint4*)nodes)[j];
            const unsigned place[4] = {word.x & LOW, word.y & LOW,
                                       word.z & LOW, word.w & LOW};
            on_faces.row[i] = word.x >> HIGH;
            const VECTOR* const geometry = room + SHAPE + e * GEOMETRY;
            const REAL* const shape = (const REAL*)geometry;
            REAL(&square)[4] = on_faces.square[i];
            fields(square, (const VECTOR*)squares + j, NFP);
#pragma unroll
            for (int f = 0; f < 4; ++f) {
                // p and the inflow, on both sides.
                alignas(16) REAL near[4];
                load(near, at(room + STATE + e * NP, place[f]));
                const unsigned way = on_faces.link[i][f] % 32;
                const REAL(&v)[4] = on_faces.far[i][f];
                const REAL inward =
                    f ? near[f] : -(near[1] + near[2] + near[3]);
                REAL outer = v[0];
                REAL out = way < 6    ? -(v[1] + v[2] + v[3])
                           : way < 12 ? v[1]
                           : way < 18 ? v[2]
                                      : v[3];
                if (way == GHOST) {   // the boundary: a mirror
                    const unsigned face = on_faces.link[i][f] / 32;
                    const REAL* const m = boundary + face * 5;
                    const REAL* const g =
                        data + (size_t)face * NFP + NFP - 1 - j;
                    const size_t field = (size_t)faces * NFP;
                    outer = m[0] * near[0] + g[0];
                    out = m[2] * g[field] + m[3] * g[2 * field]
                          + m[4] * g[3 * field] - m[1] * inward;
                }
                const REAL flux = shape[f] * (outer - near[0])
                                  - shape[4 + f] * (out + inward);
                on_faces.lifted[i][f] = square[3] * flux;
            }
            store(room + FLUX + lane + i * LANES, on_faces.lifted[i]);
        }
}
