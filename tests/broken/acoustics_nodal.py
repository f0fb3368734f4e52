"""Wrong nodal kernels of acoustics: each is the right one but for one mistake in its text."""

from collections.abc import Callable
from dataclasses import dataclass

from mistakes import remade

from dgbook.acoustics.kernels.element_flux import make_element_flux
from dgbook.acoustics.kernels.element_lift import make_element_lift
from dgbook.acoustics.kernels.element_volume import make_element_volume
from dgbook.acoustics.kernels.nodal_flux import make_nodal_flux
from dgbook.acoustics.kernels.node_surface import make_node_surface
from dgbook.acoustics.kernels.node_volume import make_node_volume


@dataclass(frozen=True)
class Mistake:
    """What is wrong in which kernel, or in the numerical flux, and the text that makes it so."""

    name: str
    factory: Callable
    right: str
    wrong: str

    @property
    def by_node(self) -> bool:
        """Whether a thread of the kernel has a node."""
        return "element" not in self.factory.__name__

    @property
    def kernel(self) -> str:
        """The launcher's name of the kernel; the flux is seen in the surface kernel."""
        last = self.factory.__name__.rpartition("_")[2]
        return "surface" if self.factory is make_nodal_flux else last

    def make(self, *arguments):
        """The wrong kernel."""
        calls = (make_node_surface,) if self.factory is make_nodal_flux else ()
        functions = self.factory, *calls
        made = remade(self.name, functions, self.right, self.wrong)
        return made[functions[-1].__name__](*arguments)


BARRIER = "cuda.syncthreads()\n"
MISTAKES = [
    Mistake(
        "no barrier before the fields are read",
        make_node_volume,
        BARRIER,
        "\n",
    ),
    Mistake(
        "kappa and 1/rho are exchanged",
        make_node_volume,
        "-material[2 * k] * divergence",
        "-material[2 * k + 1] * divergence",
    ),
    Mistake(
        "the metric is transposed",
        make_node_volume,
        "rst_xyz[9 * k + 3 * j + a]",
        "rst_xyz[9 * k + 3 * a + j]",
    ),
    Mistake(
        "the gradient has the wrong sign",
        make_node_volume,
        "= -material[2 * k + 1] * gradient",
        "= material[2 * k + 1] * gradient",
    ),
    Mistake(
        "the derivative matrices are read row by row",
        make_node_volume,
        "m * Np + n]",
        "n * Np + m]",
    ),
    Mistake(
        "no barrier before the fluxes are read",
        make_node_surface,
        BARRIER,
        "\n",
    ),
    Mistake(
        "the lift replaces the volume's part",
        make_node_surface,
        "+ n] += du[c]",
        "+ n] = du[c]",
    ),
    Mistake(
        "the second element of a block lifts the fluxes of the first",
        make_node_surface,
        "s[e * Nf + m, c]",
        "s[m, c]",
    ),
    Mistake(
        "threads that are no node take part in the lift",
        make_node_surface,
        "if k < K and n < Np:",
        "if k < K:",
    ),
    Mistake(
        "the neighbor's nodes are taken in the order of the own face",
        make_nodal_flux,
        "opposite[link % WAYS * Nfp + i]",
        "face_nodes[f * Nfp + i]",
    ),
    Mistake(
        "the neighbor's nodes are taken as if all faces met in one way",
        make_nodal_flux,
        "opposite[link % WAYS * Nfp + i]",
        "opposite[i]",
    ),
    Mistake(
        "the jump is interior minus exterior",
        make_nodal_flux,
        "u[c * size + q] - u[c * size + inner]",
        "u[c * size + inner] - u[c * size + q]",
    ),
    Mistake(
        "the penalty on the normal velocity has the wrong sign",
        make_nodal_flux,
        "v = faces[w + 5] * normal",
        "v = -faces[w + 5] * normal",
    ),
    Mistake(
        "the weights of p and v are exchanged",
        make_nodal_flux,
        "v = faces[w + 5] * normal - faces[w + 6] * p",
        "v = faces[w + 4] * normal - faces[w + 3] * p",
    ),
    Mistake(
        "walls mirror the velocity as the pressure",
        make_nodal_flux,
        "mirrors[2 * b + min(c, 1)]",
        "mirrors[2 * b]",
    ),
    Mistake(
        "the mirrored value is taken for the jump",
        make_nodal_flux,
        "(m - one) * u",
        "m * u",
    ),
    Mistake(
        "the first field's data comes in for all",
        make_nodal_flux,
        "data[(c * nb + b) * Nfp + i]",
        "data[b * Nfp + i]",
    ),
    Mistake(
        "no barrier before the next sub-block of D",
        make_element_volume,
        "while first < Np:\n                " + BARRIER,
        "while first < Np:\n",
    ),
    Mistake(
        "no barrier after a sub-block of D is loaded",
        make_element_volume,
        BARRIER + "                m = np.uint32(0)",
        "\n                m = np.uint32(0)",
    ),
    Mistake(
        "derivatives are not set to zero for the next rows",
        make_element_volume,
        "                        du[r, c, j] = real(0)",
        "                        du[r, c, j] = du[r, c, j] if row > 0 else real(0)",
    ),
    Mistake(
        "kappa and 1/rho are exchanged between threads",
        make_element_volume,
        "-material[K + k] * gradient",
        "-material[k] * gradient",
    ),
    Mistake(
        "rows beyond the last are written",
        make_element_volume,
        "if element < K and row + r < Np:",
        "if element < K:",
    ),
    Mistake(
        "elements beyond the last are computed again, a race",
        make_element_volume,
        "if element < K and row + r < Np:",
        "if row + r < Np:",
    ),
    Mistake(
        "fluxes of v_y and v_z are exchanged",
        make_element_flux,
        "= vy, vz",
        "= vz, vy",
    ),
    Mistake(
        "faces are numbered as nodes",
        make_element_flux,
        "np.uint32(m // Nfp), np.uint32(m % Nfp)",
        "np.uint32(m % 4), np.uint32(m // 4)",
    ),
    Mistake(
        "no barrier before the next sub-block of the lift",
        make_element_lift,
        "while first < Nf:\n                " + BARRIER,
        "while first < Nf:\n",
    ),
    Mistake(
        "no barrier after a sub-block of the lift is loaded",
        make_element_lift,
        BARRIER + "                m = np.uint32(0)",
        "\n                m = np.uint32(0)",
    ),
    Mistake(
        "the last columns of the lift are left out",
        make_element_lift,
        "while first < Nf:",
        "while first + columns < Nf:",
    ),
]
