"""Wrong fused kernels of Maxwell's equations in CUDA C++: the right one but for one mistake."""

from functools import partial

from mistakes import CudaMistake as Tensor

Fp64 = partial(Tensor, dtype="float64")
Fp64OfAmpere = partial(Fp64, capability=(8, 0))
Plain = partial(Tensor, order=2, capability=(7, 5))
FETCHED = "fetch(shared, first, u, links, geometry, res, a);\n"
FLUXES = "boundary, faces);\n"
LIFTED = "add_lifted(rates, place, shared, lift);\n"
STORED = "store_rates(rates, place, shared);\n"
BARRIER = "    __syncthreads();\n"
MISTAKES = [
    Tensor("the jump is a sum", "jump1 = outer.E1 - inner.E1", "jump1 = outer.E1 + inner.E1"),
    Tensor("the neighbor is that of the first face", "e * 4 + f] / 32", "e * 4] / 32"),
    Tensor("the neighbor's nodes in the order of ghosts", "opposite[way * NFP + i]", "opposite[i]"),
    Tensor("a curl has the wrong sign", "4 - f, -1, x, D3", "4 - f, 1, x, D3"),
    Tensor(
        "one face is not lifted",
        "f < 4; ++f) {\n        REAL lifted[NODES][HALVES]",
        "f < 3; ++f) {\n        REAL lifted[NODES][HALVES]",
    ),
    Tensor(
        "all elements of a tile have the faces of the first eight",
        "(place.element + h * 8) * GEOMETRY",
        "place.element * GEOMETRY",
    ),
    Tensor(
        "one of the three products of fp32 is dropped",
        "            mma(c[i], f, field.low, matrix.high[i]);\n",
        "",
    ),
    Tensor(
        "a product's columns are exchanged",
        '"r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1]))',
        '"r"(__float_as_uint(b[1])), "r"(__float_as_uint(b[0]))',
    ),
    Fp64(
        "a product's rows are exchanged", '"d"(a[0][0]), "d"(a[1][0])', '"d"(a[1][0]), "d"(a[0][0])'
    ),
    Fp64OfAmpere("both products take the first field", ': "d"(a[1][0])', ': "d"(a[0][0])'),
    Fp64(
        "fields of E go with the wrong ones of H", "(component + components / 2)", "(component + 1)"
    ),
    Tensor("copies are not waited for", "    wait_for_copies();\n", ""),
    Tensor("no barrier after the states are fetched", FETCHED + BARRIER, FETCHED),
    Tensor("no barrier before the flux is lifted", FLUXES + BARRIER, FLUXES),
    Tensor("no barrier before du/dt takes the place of the state", LIFTED + BARRIER, LIFTED),
    Tensor("no barrier before the update", STORED + BARRIER, STORED),
    Tensor(
        "a warp does not come to a barrier",
        STORED + BARRIER,
        STORED + "    if (threadIdx.x >= 32)\n    " + BARRIER,
    ),
    Tensor(
        "links stand behind the block's shared memory",
        "(shape + ELEMENTS * GEOMETRY)",
        "(shape + 2 * ELEMENTS * GEOMETRY)",
    ),
    Tensor(
        "the flux takes the place of the state", "flux = state + GROUPS * STATE", "flux = state"
    ),
    Plain("a product is transposed", "-= D[i][y].x * v[z]", "-= D[i][z].x * v[y]"),
    Plain(
        "all elements of a row have the flux of the first",
        "read(v, values + e * POINTS * 2)",
        "read(v, values)",
    ),
    Plain("the metric is not symmetric", "metric[3] * rate[f + 1]", "metric[2] * rate[f + 1]"),
    Plain("the residual is not scaled", "a * r[j] + dt", "r[j] + dt"),
]
FACTORED = [
    Tensor("the state is forgotten", "r[j] += b * v[j]", "r[j] += 0 * b"),
    Fp64(
        "the state is the new array", "spread(shared.state, i) : states + i", "next + i : next + i"
    ),
    Plain("what is written is what the other form writes", "else if (b != 0)", "else if (b > 1)"),
]
"""Of stages of a factored method."""
