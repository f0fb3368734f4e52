// What a team has in shared memory.

constexpr int PAIRS = round_up(NP, 2);          // of an element and a component
constexpr int SIZE = 6 * PAIRS / WIDTH;         // VECTORs of the state of an element
constexpr int GEOMETRY = 24, METRIC = 16;       // numbers per element; where the metric is
constexpr int PLANES = 8 * ELEMENTS;            // two numbers of each face

// A plane is an odd number of VECTORs, so that threads that have planes side by side
// meet in different banks.
constexpr int PLANE = ((NP + WIDTH - 1) / WIDTH | 1) * WIDTH;
constexpr int RATES = round_up(6 * ELEMENTS * LOWER, WIDTH);
constexpr int TEAM = ELEMENTS * SIZE + (RATES + PLANES * PLANE + ELEMENTS * GEOMETRY) / WIDTH
                   + ELEMENTS;                  // VECTORs

struct Room {
    COUPLE* state;    // of each element three times all pairs x_i . E, x_i . (Z H)
    COUPLE* rates;    // three times those of all elements, of degree N - 1
    REAL* planes;     // what is lifted: number, face, element, point
    REAL* shape;      // GEOMETRY numbers of each element
    unsigned* link;   // what each element meets on its four faces
    __device__ Room(VECTOR* memory)
    {
        state = (COUPLE*)memory;
        rates = (COUPLE*)(memory + ELEMENTS * SIZE);
        planes = (REAL*)rates + RATES;
        shape = planes + PLANES * PLANE;
        link = (unsigned*)(shape + ELEMENTS * GEOMETRY);
    }
};

// A point with multi-index a. In the numbering of the basis b + e_2 and b + e_3 are
// `row` and `up` behind b + e_0, and a - e_2 and a - e_3 of degree N - 1 so many in
// front of a - e_0, which is number `lower`.
struct Point {
    unsigned a[4], lower, row, up;
    __device__ Point(unsigned word)
    {
        a[1] = word & 15, a[2] = word >> 4 & 15, a[3] = word >> 8 & 15;
        a[0] = ORDER - a[1] - a[2] - a[3];
        lower = word >> 12 & 1023, up = word >> 22, row = a[0] + a[1] + 1;
    }
};
