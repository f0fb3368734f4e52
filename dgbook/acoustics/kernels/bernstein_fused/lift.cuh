// Steps 5 and 6: the lift, from the four faces at once.
//
// The points of a face are numbered from its last vertex, row by row,
// with 1, 2, 3, ... points per row. Then each slice of the lift follows
// from the one before it by
//
//     t_j = t_j + t_{j + r + 1} + t_{j + r + 2},   j in row r,
//
// for every degree. A thread keeps its t_j and loads the other two.
// There are no factors, because t_j is the control point times 2
// (i + 1)! b! (-1)^i, where b is the multi-index of j in slice i;
// `weights` divide by it. The arrays `squares` and `weights` hold the
// first VECTORs of all points, then the second ones, and so on.

// The position of face f in the quadruples of slice i. In the end a
// thread reads one number from each of four quadruples. If it were
// always the same one, the threads of a warp would read from only a
// quarter of the banks.
__device__ constexpr int turned(int f, int i)
{
    return f / WIDTH * WIDTH + (f + i) % WIDTH;
}

// Slice 0: L_0, from six neighbors on the face. The factor of a missing
// neighbor is zero; the number that is read for it may also be a
// derivative, before the first flux, or a state, behind the last one.
__device__ void lift_to_faces(FacePoints& on_faces, VECTOR* room,
                              unsigned lane)
{
#pragma unroll
    for (int i = 0; i < ROUNDS; ++i)
        if (on_faces.point[i] < NFP) {
            const VECTOR* const flux = room + FLUX + lane + i * LANES;
            const VECTOR* const above = flux - on_faces.row[i];
            const VECTOR* const below = flux + on_faces.row[i];
            alignas(16) REAL x[6][4];
            load(x[0], flux - 1), load(x[1], above - 1);
            load(x[2], flux + 1), load(x[3], above);
            load(x[4], below + 1), load(x[5], below + 2);
            const REAL(&square)[4] = on_faces.square[i];
            const REAL total
                = square[0] + square[1] + square[2] + (2 * ORDER + 3);
            REAL(&t)[4] = on_faces.lifted[i];
#pragma unroll
            for (int f = 0; f < 4; ++f) {
                t[f] = total * t[f] + square[0] * (x[0][f] + x[1][f]);
                t[f] += square[1] * (x[2][f] + x[3][f]);
                t[f] += square[2] * (x[4][f] + x[5][f]);
            }
            store(room + SLICE + on_faces.element[i] * NP
                      + on_faces.point[i],
                  t);
        }
}

// The other slices, each smaller than the one before.
__device__ void lift_inward(FacePoints& on_faces, VECTOR* room)
{
#pragma unroll
    for (int n = ORDER - 1; n >= 0; --n) {
        meet();
#pragma unroll
        for (int i = 0; i < ROUNDS; ++i)
            if (on_faces.point[i] < triangle(n)) {
                VECTOR* const slice = room + SLICE
                                      + on_faces.element[i] * NP
                                      + on_faces.point[i];
                const VECTOR* const before =
                    slice + NP - tetrahedron(n + 1) + on_faces.row[i];
                alignas(16) REAL x[4], y[4], sum[4];
                load(x, before + 1), load(y, before + 2);
                REAL(&t)[4] = on_faces.lifted[i];
#pragma unroll
                for (int f = 0; f < 4; ++f) {
                    const int old = turned(f, ORDER - n - 1);
                    t[f] += x[old] + y[old];
                    sum[turned(f, ORDER - n)] = t[f];
                }
                store(slice + NP - tetrahedron(n), sum);
            }
    }
}
