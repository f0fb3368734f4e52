// Step 2: the neighbors' fields at the points of the faces.

__device__ void fetch_neighbors(FacePoints& on_faces,
                                const VECTOR* room, unsigned lane,
                                const REAL* u, const unsigned* opposite)
{
#pragma unroll
    for (int i = 0; i < ROUNDS; ++i) {
        // The thread's point, its element, and the element's neighbors.
        const unsigned q = lane + i * LANES;
        const bool inside = q < ELEMENTS * NFP;
        on_faces.element[i] = inside ? q / NFP : ELEMENTS - 1;
        on_faces.point[i] = inside ? q % NFP : NFP;
        const unsigned j =
            on_faces.point[i] < NFP ? on_faces.point[i] : 0;
        const uint4* const links = (const uint4*)(room + LINK);
        const uint4 four = links[on_faces.element[i]];
        unsigned(&link)[4] = on_faces.link[i];
        link[0] = four.x, link[1] = four.y;
        link[2] = four.z, link[3] = four.w;

        // Their fields; on the boundary, numbers that are not used.
#pragma unroll
        for (int f = 0; f < 4; ++f) {
            const unsigned way = link[f] % 32;
            const unsigned neighbor = way < GHOST ? link[f] / 32 : 0;
            const unsigned place = opposite[way * NFP + j];
            const size_t node = (size_t)neighbor * SIZE + place;
            fields(on_faces.far[i][f], (const VECTOR*)u + node, NP);
        }
    }
}
