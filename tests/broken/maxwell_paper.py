"""Wrong kernels of Maxwell's equations on the paper's path, each by one mistake in its text."""

from collections.abc import Callable
from dataclasses import dataclass

from mistakes import remade

from dgbook.maxwell.kernels.assemble import make_assemble
from dgbook.maxwell.kernels.differentiate import make_differentiate
from dgbook.maxwell.kernels.differentiate_matrix import make_differentiate_matrix
from dgbook.maxwell.kernels.gather import make_gather
from dgbook.maxwell.kernels.lift import make_lift
from dgbook.maxwell.kernels.lift_matrix import make_lift_matrix


@dataclass(frozen=True)
class Mistake:
    """What is wrong in which kernel, and the text that makes it so."""

    name: str
    kernel: str
    factory: Callable
    right: str
    wrong: str

    @property
    def strategy(self) -> str:
        """Which plan launches this kernel."""
        return "matrix" if "matrix" in self.factory.__name__ else "field"

    def make(self, *arguments):
        """The wrong kernel."""
        made = remade(self.name, [self.factory], self.right, self.wrong)
        return made[self.factory.__name__](*arguments)


BARRIER = "cuda.syncthreads()"
MISTAKES = [
    Mistake(
        "the upwind part has the wrong sign",
        "gather",
        make_gather,
        "scale * (Zp * nH[c] - a * nnE[c])",
        "scale * (Zp * nH[c] + a * nnE[c])",
    ),
    Mistake(
        "the other side's flux has the wrong sign",
        "gather",
        make_gather,
        "-scale * Zp * (nE[c] - a * Zm * nnH[c])",
        "scale * Zp * (nE[c] - a * Zm * nnH[c])",
    ),
    Mistake(
        "the two impedances are swapped",
        "gather",
        make_gather,
        "scale * (Zp * nH[c] - a * nnE[c])",
        "scale * (Zm * nH[c] - a * nnE[c])",
    ),
    Mistake(
        "the neighbor's nodes are taken in the order of its own face",
        "gather",
        make_gather,
        "lists[d[p + LIST_PLUS] * Nfp + x]",
        "lists[d[p + LIST_MINUS] * Nfp + x]",
    ),
    Mistake(
        "the other side's fluxes are stored in my order",
        "gather",
        make_gather,
        "i += lists[d[p + LIST_STORE] * Nfp + x]",
        "i += x",
    ),
    Mistake(
        "the magnetic field is mirrored as the electric one",
        "gather",
        make_gather,
        "g[q + MIRROR + c // 3]",
        "g[q + MIRROR]",
    ),
    Mistake(
        "no barrier after the descriptors",
        "gather",
        make_gather,
        BARRIER + "\n\n        while e < pairs",
        "\n        while e < pairs",
    ),
    Mistake(
        "no barrier after the fluxes",
        "gather",
        make_gather,
        BARRIER + "\n\n        size",
        "\n        size",
    ),
    Mistake("no barrier", "lift", make_lift, BARRIER, "pass"),
    Mistake(
        "LIFT is transposed", "lift", make_lift, "matrix[n * Np + node]", "matrix[node * Nf + n]"
    ),
    Mistake(
        "all elements have the Jacobian of the first",
        "lift",
        make_lift,
        "inverse_jacobian[m * K_M + element]",
        "inverse_jacobian[m * K_M]",
    ),
    Mistake("no barrier", "lift", make_lift_matrix, BARRIER, "pass"),
    Mistake(
        "a segment goes on behind the matrix's last row",
        "lift",
        make_lift_matrix,
        "(begin + n // Nf) % Np",
        "begin + n // Nf",
    ),
    Mistake("no barrier", "differentiate", make_differentiate, BARRIER, "pass"),
    Mistake(
        "D is transposed",
        "differentiate",
        make_differentiate,
        "matrix[(r * Np + n) * Np + node]",
        "matrix[(r * Np + node) * Np + n]",
    ),
    Mistake("no barrier", "differentiate", make_differentiate_matrix, BARRIER, "pass"),
    Mistake(
        "all elements have the values of the first",
        "differentiate",
        make_differentiate_matrix,
        "N_pM + element * Np + n",
        "N_pM + n",
    ),
    Mistake(
        "epsilon and mu are swapped",
        "assemble",
        make_assemble,
        "inverse_epsilon = material[2 * slot]\n            inverse_mu = material[2 * slot + 1]",
        "inverse_mu = material[2 * slot]\n            inverse_epsilon = material[2 * slot + 1]",
    ),
    Mistake(
        "the curl of E has the wrong sign",
        "assemble",
        make_assemble,
        "(lifted[j] - curl_E)",
        "(lifted[j] + curl_E)",
    ),
]
