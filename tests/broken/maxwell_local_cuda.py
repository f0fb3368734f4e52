"""Wrong kernels of local time steps in CUDA C++."""

from functools import partial

from mistakes import CudaMistake

Mistake = partial(CudaMistake, order=2)
TERMS = "next_term<J>(shared, from, to, derivative);\n        __syncthreads();"
MISTAKES = [
    Mistake("both halves are the first", "rest[x] -= part[x];", "rest[x] = part[x];"),
    Mistake("the first region is read", "link += (bits & 1) * region * 32;", ";"),
    Mistake("an element of another cluster is updated", "if (mine && n < NP)", "if (n < NP)"),
    Mistake("no barrier between terms", TERMS, TERMS.replace("__syncthreads()", "")),
]
