"""Wrong Bernstein-Bezier kernels: each is the right one but for one mistake in its text."""

from collections.abc import Callable
from dataclasses import dataclass

from mistakes import remade

from dgbook.acoustics.kernels.bern_element import make_bern_element
from dgbook.acoustics.kernels.bern_optimal import make_bern_optimal
from dgbook.acoustics.kernels.bern_surface import make_bern_surface, make_flux
from dgbook.acoustics.kernels.bern_volume import make_bern_volume, make_stored_row


@dataclass(frozen=True)
class Mistake:
    """What is wrong in which kernel, and the text that makes it so.

    `changed` is the function whose text is wrong: the factory of the kernel or, where it is not,
    the one that makes a device function for it.
    """

    name: str
    factory: Callable
    right: str
    wrong: str
    changed: Callable | None = None

    @property
    def kernel(self) -> str:
        """Whose place it takes in a launcher."""
        return "volume" if self.factory is make_bern_volume else "surface"

    @property
    def surface(self) -> str:
        """Which plan launches this kernel."""
        others = {make_bern_optimal: "optimal", make_bern_element: "element"}
        return others.get(self.factory, "factored")

    def make(self, *arguments):
        """The wrong kernel."""
        functions = tuple(dict.fromkeys((self.changed or self.factory, self.factory)))
        made = remade(self.name, functions, self.right, self.wrong)
        return made[self.factory.__name__](*arguments)


BARRIER = "cuda.syncthreads()\n"
MISTAKES = [
    Mistake("no barrier", make_bern_volume, BARRIER, "pass\n"),
    Mistake(
        "kappa and 1/rho are swapped",
        make_bern_volume,
        "-material[2 * k] * div",
        "-material[2 * k + 1] * div",
    ),
    Mistake(
        "all derivatives have the columns of the first",
        make_bern_volume,
        "4 * (m * Np + n)",
        "4 * n",
        make_stored_row,
    ),
    Mistake(
        "the derivative along l_0 is forgotten",
        make_bern_volume,
        "r * (D[m, c] - D[0, c])",
        "r * D[m, c]",
    ),
    Mistake("dr/dx is transposed", make_bern_volume, "g + 3 * (m - 1) + d", "g + 3 * d + m - 1"),
    Mistake(
        "the neighbor's nodes are taken in the order of the own face",
        make_bern_surface,
        "opposite[way * Nfp + i]",
        "face_nodes[j]",
        make_flux,
    ),
    Mistake(
        "the jump of n.v has the wrong sign",
        make_bern_surface,
        "result -= faces[w + 1]",
        "result += faces[w + 1]",
        make_flux,
    ),
    Mistake(
        "the velocity is mirrored as the pressure",
        make_bern_optimal,
        "mirrors[2 * b + min(c, 1)]",
        "mirrors[2 * b]",
        make_flux,
    ),
    Mistake(
        "the field outside is that of another face",
        make_bern_optimal,
        "data[(c * nb + b) * Nfp + i]",
        "data[c * nb * Nfp + i]",
        make_flux,
    ),
    Mistake(
        "no barrier after s",
        make_bern_surface,
        BARRIER + "\n        j = n\n        while j < end:\n            first",
        "\n        j = n\n        while j < end:\n            first",
    ),
    Mistake(
        "no barrier after the fluxes",
        make_bern_surface,
        BARRIER + "\n        if end > 0",
        "\n        if end > 0",
    ),
    Mistake(
        "the flux of v has the wrong sign",
        make_bern_surface,
        "-faces[w + 2] * faces[w + 3 + d]",
        "faces[w + 2] * faces[w + 3 + d]",
    ),
    Mistake(
        "L_0 takes what the first face has",
        make_bern_surface,
        "first + face_columns[v + i]",
        "face_columns[v + i]",
    ),
    Mistake(
        "kappa and 1/rho are swapped",
        make_bern_surface,
        "2 * k + min(c, 1)",
        "2 * k + 1 - min(c, 1)",
    ),
    Mistake(
        "the volume's part is lost",
        make_bern_surface,
        "out[c * size + k * Np + n] += ",
        "out[c * size + k * Np + n] = ",
    ),
    Mistake(
        "no barrier after s",
        make_bern_optimal,
        BARRIER + "\n        if inside and n < Nfp",
        "\n        if inside and n < Nfp",
    ),
    Mistake(
        "no barrier between slices",
        make_bern_optimal,
        BARRIER + "            count",
        "pass\n            count",
    ),
    Mistake(
        "no barrier after the last slice",
        make_bern_optimal,
        BARRIER + "\n        if inside:",
        "\n        if inside:",
    ),
    Mistake(
        "a slice overwrites the one before, and no barrier parts reads from writes",
        make_bern_optimal,
        "swept[e, start + n, f] = l[f]",
        "swept[e, n, f] = l[f]",
    ),
    Mistake(
        "a slice is one row short",
        make_bern_optimal,
        "rows * (rows + 1) // 2",
        "rows * (rows - 1) // 2",
    ),
    Mistake(
        "all sweeps are numbered as that from face 0",
        make_bern_optimal,
        "places[4 * n + f]",
        "places[4 * n]",
    ),
    Mistake(
        "r is forgotten",
        make_bern_optimal,
        "faces[w + 2] * faces[w + 3 + d]",
        "faces[w + 3 + d]",
    ),
    Mistake(
        "all faces are numbered as face 0",
        make_bern_element,
        "nodes[m + j]",
        "nodes[(m + j) % Np]",
    ),
    Mistake("a slice is scaled as the one before", make_bern_element, "N - n + 2", "N - n + 1"),
    Mistake("the third entry is that of the same row", make_bern_element, "p + row + 1", "p + row"),
    Mistake(
        "the end of a row is not skipped",
        make_bern_element,
        "p, b_2 = np.uint32(p + 1)",
        "p, b_2 = np.uint32(p)",
    ),
]
