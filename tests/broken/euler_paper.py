"""Wrong kernels of the Euler equations on the paper's path, each by one mistake in its text."""

from collections.abc import Callable
from dataclasses import dataclass
from unittest import mock

from mistakes import remade

from dgbook.euler.kernels.add import make_add
from dgbook.euler.kernels.check import make_check
from dgbook.euler.kernels.face import make_face
from dgbook.euler.kernels.rhs import make_rhs
from dgbook.euler.kernels.riemann import make_hllc, make_roe, make_rusanov, on_device
from dgbook.euler.kernels.volume import make_volume


@dataclass(frozen=True)
class Mistake:
    """What is wrong in which kernel, or in the numerical flux, and the text that makes it so."""

    name: str
    kernel: str
    factory: Callable
    right: str
    wrong: str

    @property
    def flux(self) -> str:
        """Which numerical flux shows it."""
        made = self.factory.__name__.removeprefix("make_")
        return made if made in ("hllc", "rusanov") else "roe"

    @property
    def race(self) -> str:
        """Which plan launches this kernel."""
        return "atomic" if "atomic" in self.name else "split"

    def make(self, *arguments):
        """The wrong kernel; the mistake may be in the numerical flux that it calls."""
        wrong = remade(self.name, [self.factory], self.right, self.wrong)[self.factory.__name__]
        if self.factory not in (make_roe, make_rusanov, make_hllc):
            return wrong(*arguments)
        changed = {"make_flux": lambda name, real: wrong(real, on_device)}
        with mock.patch.dict(make_face.__globals__, changed):
            return make_face(*arguments)


MISTAKES = [
    Mistake(
        "the acoustic waves' dissipation has the wrong sign",
        "face",
        make_roe,
        "right[0] * nr - middle * d0 - C1",
        "right[0] * nr - middle * d0 + C1",
    ),
    Mistake(
        "the enthalpies are averaged without weights",
        "face",
        make_roe,
        "a * Hl + b * Hr",
        "half * (Hl + Hr)",
    ),
    Mistake("no entropy fix", "face", make_roe, "m = max(abs(minus), fix * c)", "m = abs(minus)"),
    Mistake(
        "only the left side's speed counts",
        "face",
        make_rusanov,
        "abs(nr) + math.sqrt(gamma * pr / right[0])",
        "abs(nl) + math.sqrt(gamma * pl / left[0])",
    ),
    Mistake(
        "a wave that runs away counts nevertheless",
        "face",
        make_hllc,
        "min(SL, zero)",
        "SL",
    ),
    Mistake(
        "the neighbor's nodes are read in its own order",
        "face",
        make_face,
        "i, m = nodes[f * Nfp + j], nodes[g * Nfp + Nfp - 1 - j]\n            for s in range(4):\n"
        "                near",
        "i, m = nodes[f * Nfp + j], nodes[g * Nfp + j]\n            for s in range(4):\n"
        "                near",
    ),
    Mistake(
        "the neighbor's residual is stored in the left's order",
        "face",
        make_face,
        "mirror = out + (s * Nfp + Nfp - 1 - j) * stride",
        "mirror = out + (s * Nfp + j) * stride",
    ),
    Mistake(
        "the neighbor's residual has the sign of the left's",
        "face",
        make_face,
        "right[mirror] = -value",
        "right[mirror] = value",
    ),
    Mistake(
        "the wall's normal velocity is stopped and not turned round",
        "face",
        make_face,
        "two * (ul[1] * nx + ul[2] * ny)",
        "ul[1] * nx + ul[2] * ny",
    ),
    Mistake(
        "the length of the edge is missing",
        "face",
        make_face,
        "phi[(Ne + q) * Nfp + j] * length",
        "phi[(Ne + q) * Nfp + j]",
    ),
    Mistake(
        "atomic additions without atoms: a race",
        "face",
        make_face,
        "cuda.atomic.add(left, p, value)",
        "left[p] += value",
    ),
    Mistake(
        "left and right are exchanged",
        "add",
        make_add,
        "left if side == 0 else right",
        "right if side == 0 else left",
    ),
    Mistake(
        "every edge's residual goes to the first edge's nodes",
        "add",
        make_add,
        "nodes[f * Nfp + j]",
        "nodes[j]",
    ),
    Mistake(
        "the residual has the wrong sign", "rhs", make_rhs, "-inverse_jacobian", "inverse_jacobian"
    ),
    Mistake(
        "the Jacobian is missing",
        "rhs",
        make_rhs,
        "scale = -inverse_jacobian[k]",
        "scale = real(-1)",
    ),
    Mistake(
        "the second direction is forgotten",
        "volume",
        make_volume,
        "dr * Fr[s] + ds * Fs[s]",
        "dr * Fr[s]",
    ),
    Mistake(
        "dr/dy and ds/dx are swapped",
        "volume",
        make_volume,
        "rx, ry = metric[k], metric[K + k]\n        sx, sy = metric[2 * K + k]",
        "rx, ry = metric[k], metric[2 * K + k]\n        sx, sy = metric[K + k]",
    ),
    Mistake(
        "no pressure in the energy flux", "volume", make_volume, "(w[3] + p) * vr", "w[3] * vr"
    ),
]
CHECKS = [
    Mistake(
        "NaN is taken for good",
        "check",
        make_check,
        "not (rho > zero and zero < internal < infinity)",
        "rho <= zero or internal <= zero",
    ),
    Mistake(
        "only the density is looked at",
        "check",
        make_check,
        "zero < internal",
        "-infinity < internal",
    ),
    Mistake("the last element is told", "check", make_check, "cuda.atomic.min", "cuda.atomic.exch"),
]
