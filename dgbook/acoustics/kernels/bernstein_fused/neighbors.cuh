// Step 2: the neighbors' fields, point by point of the faces.

__device__ void fetch_neighbors(FacePoints& on_faces, const VECTOR* room, unsigned lane,
                                const REAL* u, const unsigned* opposite)
{
#pragma unroll
    for (int i = 0; i < ROUNDS; ++i) {
        // Which point of which element, and what it meets on its four faces.
        const unsigned q = lane + i * LANES;
        on_faces.element[i] = q < ELEMENTS * NFP ? q / NFP : ELEMENTS - 1;
        on_faces.point[i] = q < ELEMENTS * NFP ? q % NFP : NFP;
        const unsigned j = on_faces.point[i] < NFP ? on_faces.point[i] : 0;
        const uint4 four = ((const uint4*)(room + LINK))[on_faces.element[i]];
        unsigned(&link)[4] = on_faces.link[i];
        link[0] = four.x, link[1] = four.y, link[2] = four.z, link[3] = four.w;

        // On a boundary some numbers that are not used.
#pragma unroll
        for (int f = 0; f < 4; ++f) {
            const unsigned way = link[f] % 32;
            const unsigned neighbor = way < GHOST ? link[f] / 32 : 0;
            const size_t node = (size_t)neighbor * SIZE + opposite[way * NFP + j];
            fields(on_faces.far[i][f], (const VECTOR*)u + node, NP);
        }
    }
}
