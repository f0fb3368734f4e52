// How an element's geometry enters its rates.

// Add the two lifted numbers of face f, times dual tangents of that
// face, to the contravariant components of J du/dt. The compiler knows
// f.
__device__ void add_face(REAL (&rate)[6], int f, const REAL* turn,
                         REAL A, REAL B)
{
    const int s = f < 2 ? 1 : 0, t = f < 3 ? 2 : 1;
    const REAL E1 = f % 2 ? B : -B, E2 = f % 2 ? -A : A;
    const REAL H1 = turn[2] * A - turn[1] * B;
    const REAL H2 = turn[0] * B - turn[1] * A;
    rate[s] += E1, rate[t] += E2, rate[3 + s] += H1, rate[3 + t] += H2;
    if (f == 0)
        rate[0] -= E1 + E2, rate[3] -= H1 + H2;
}

// From contravariant components of J du/dt to covariant ones of du/dt.
__device__ void lower(REAL* to, const REAL (&rate)[6],
                      const REAL* metric)
{
#pragma unroll
    for (int f = 0; f < 6; f += 3) {
        to[f] = metric[0] * rate[f] + metric[1] * rate[f + 1]
                + metric[2] * rate[f + 2];
        to[f + 1] = metric[1] * rate[f] + metric[3] * rate[f + 1]
                    + metric[4] * rate[f + 2];
        to[f + 2] = metric[2] * rate[f] + metric[4] * rate[f + 1]
                    + metric[5] * rate[f + 2];
    }
}
