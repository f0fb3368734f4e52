// The layout of a team's shared memory.

// Pairs per element and component.
constexpr int PAIRS = round_up(NP, 2);
// VECTORs of an element's state.
constexpr int SIZE = 6 * PAIRS / WIDTH;
// Numbers per element, and the first of its metric.
constexpr int GEOMETRY = 24, METRIC = 16;
// One plane per element, face and number of the flux.
constexpr int PLANES = 8 * ELEMENTS;

// A plane is an odd number of VECTORs, so that threads that work on
// neighboring planes access different banks.
constexpr int PLANE = ((NP + WIDTH - 1) / WIDTH | 1) * WIDTH;
constexpr int RATES = round_up(6 * ELEMENTS * LOWER, WIDTH);
// VECTORs per team. An element has one VECTOR of links.
constexpr int TEAM
    = ELEMENTS * SIZE + ELEMENTS
      + (RATES + PLANES * PLANE + ELEMENTS * GEOMETRY) / WIDTH;

struct Room {
    COUPLE* state;    // pairs x_i . E, x_i . (Z H): element, i, point
    COUPLE* rates;    // curls of degree N - 1: i, element, point
    REAL* planes;     // flux, then slices: number, face, element, point
    REAL* shape;      // GEOMETRY numbers of each element
    unsigned* link;   // neighbors of each element on its four faces
    __device__ Room(VECTOR* memory)
    {
        state = (COUPLE*)memory;
        rates = (COUPLE*)(memory + ELEMENTS * SIZE);
        planes = (REAL*)rates + RATES;
        shape = planes + PLANES * PLANE;
        link = (unsigned*)(shape + ELEMENTS * GEOMETRY);
    }
};

// A point with multi-index a. In the order of the basis, b + e_2 comes
// `row` points and b + e_3 `up` points after b + e_0. In degree N - 1,
// a - e_2 comes `row` points and a - e_3 `up` points before a - e_0,
// which has number `lower`.
struct Point {
    unsigned a[4], lower, row, up;
    __device__ Point(unsigned word)
    {
        a[1] = word & 15, a[2] = word >> 4 & 15, a[3] = word >> 8 & 15;
        a[0] = ORDER - a[1] - a[2] - a[3];
        lower = word >> 12 & 1023, up = word >> 22;
        row = a[0] + a[1] + 1;
    }
};
