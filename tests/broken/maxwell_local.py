"""Wrong kernels of local time steps: the right one but for one mistake in its text."""

from functools import partial

import mistakes

from dgbook.maxwell.kernels.local import make_local, make_parts
from dgbook.nodal.kernels.taylor import make_keep, make_taylor

FACTORIES = (make_keep, make_taylor, make_parts, make_local)
Mistake = partial(mistakes.Mistake, functions=FACTORIES)
BARRIER = "        cuda.syncthreads()\n                w = np.uint32(w + 3)"
MISTAKES = [
    Mistake("a sum of two steps is the last step", "two += odd[place]", "pass"),
    Mistake("both halves are the first", "odd[place] = whole - part", "odd[place] = part"),
    Mistake("halves are where they were before", "shorter + halves", "shorter"),
    Mistake("neighbors of longer steps are met where they were", "bits & 2 else now", "0 else now"),
    Mistake("the region is that of the next step", "before = np.uint32(tick - 1)", "before = tick"),
    Mistake("an element of another cluster is updated", "if k < count:", "if k < 10000:"),
    Mistake("a curl has the wrong sign", "c[4] -= d3 * x", "c[4] += d3 * x"),
    Mistake("the expansion is that of the longest step", "groups[g + CLUSTER] * 3", "2 * 3"),
    Mistake("no barrier between terms", BARRIER, BARRIER.replace("cuda.syncthreads()", "pass")),
]
TERMS = "next_term<J>(shared, from, to, derivative);\n        __syncthreads();"
CudaMistake = partial(mistakes.CudaMistake, order=2, dtype="float32")
CUDA_MISTAKES = [
    CudaMistake("a sum of two steps is the last step", "sum[x] += before[x];", ";"),
    CudaMistake("both halves are the first", "rest[x] -= part[x];", "rest[x] = part[x];"),
    CudaMistake("halves are where they were before", "+ (bits & 1) * halves", ""),
    CudaMistake(
        "neighbors of longer steps are met where they were", "bits & 2 ? later", "0 ? later"
    ),
    CudaMistake("the first region is read", "link += (bits & 1) * region * 32;", ";"),
    CudaMistake("an element of another cluster is updated", "if (mine && n < NP)", "if (n < NP)"),
    CudaMistake("a curl has the wrong sign", "b.x * v[y] - a.x * v[z]", "b.x * v[y] + a.x * v[z]"),
    CudaMistake(
        "the half has the weights of the whole", "weights[3 * J + 2]", "weights[3 * J + 1]"
    ),
    CudaMistake("no barrier between terms", TERMS, TERMS.replace("__syncthreads()", "")),
]
