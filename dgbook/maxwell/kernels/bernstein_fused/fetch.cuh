// Step 1: load the states, geometry and links of the team's elements
// into shared memory, all at once.

// Copy COUNT contiguous VECTORs.
template <int COUNT>
__device__ void fetch(void* to, const VECTOR* from, unsigned lane)
{
#pragma unroll
    for (unsigned k = 0; k < COUNT; k += LANES)
        if (const unsigned i = k + lane; i < COUNT)
            copy((VECTOR*)to + i, from + i);
}

__device__ void fetch_all(const Room& room, unsigned lane,
                          unsigned first, const REAL* u,
                          const REAL* geometry, const unsigned* links,
                          const REAL* res, REAL a)
{
    // States, geometry and links, each contiguous.
    const size_t start = (size_t)first * SIZE;
    fetch<ELEMENTS * SIZE>(room.state, (const VECTOR*)u + start, lane);
    const VECTOR* const shape
        = (const VECTOR*)geometry + first * (GEOMETRY / WIDTH);
    fetch<ELEMENTS * GEOMETRY / WIDTH>(room.shape, shape, lane);
    fetch<ELEMENTS>(room.link, (const VECTOR*)links + first, lane);

    // Prefetch res, which the update reads unless a = 0; a cache line
    // holds 8 VECTORs.
    for (unsigned i = lane * 8; a != 0 && i < ELEMENTS * SIZE;
         i += LANES * 8)
        announce((const VECTOR*)res + start + i);
    wait_for_copies();
}
