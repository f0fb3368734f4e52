// Step 1: load the states, geometry and links of the team's elements
// into shared memory, all at once.

__device__ void fetch(VECTOR* room, unsigned lane, unsigned first,
                      const REAL* u, const REAL* geometry,
                      const unsigned* links, const REAL* res, REAL a)
{
    const size_t start = (size_t)first * SIZE;

    // States, geometry and links, each contiguous.
#pragma unroll
    for (unsigned k = 0; k < ELEMENTS * SIZE; k += LANES)
        if (const unsigned i = k + lane; i < ELEMENTS * SIZE)
            copy(room + STATE + i + i / NP % WORDS * (QUADS - NP)
                     - i / SIZE * (SIZE - NP),
                 (const VECTOR*)u + start + i);
#pragma unroll
    for (unsigned k = 0; k < ELEMENTS * GEOMETRY; k += LANES)
        if (const unsigned i = k + lane; i < ELEMENTS * GEOMETRY)
            copy(room + SHAPE + i,
                 (const VECTOR*)geometry + first * GEOMETRY + i);
#pragma unroll
    for (unsigned k = 0; k < ELEMENTS; k += LANES)
        if (const unsigned i = k + lane; i < ELEMENTS)
            copy(room + LINK + i, (const VECTOR*)links + first + i);

    // Prefetch res, which the update reads unless a = 0; a cache line
    // holds 8 VECTORs.
    for (unsigned i = lane * 8; a != 0 && i < ELEMENTS * SIZE;
         i += LANES * 8)
        announce((const VECTOR*)res + start + i);
    wait_for_copies();
}
