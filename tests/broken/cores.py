"""Wrong kernels for processor cores: the right ones but for one mistake in their texts."""

from dataclasses import dataclass

import lanes_in_numpy


@dataclass(frozen=True)
class Mistake:
    """What is wrong in a family's kernel, and the text that makes it so.

    Attributes
    ----------
    family, what : str
    right, wrong : str
        What stands once in the text, and what is put in its place.
    """

    family: str
    what: str
    right: str
    wrong: str

    @property
    def name(self) -> str:
        """The family and what is wrong."""
        return f"{self.family}: {self.what}"

    def make(self) -> type:
        """The wrong launcher."""
        return lanes_in_numpy.launcher(self.family, self.right, self.wrong)


MISTAKES = [
    Mistake(
        "maxwell", "the jump is a sum", "E0, H0 = E0 - load(u, mine)", "E0, H0 = E0 + load(u, mine)"
    ),
    Mistake(
        "maxwell",
        "the upwinding of H turns round",
        "store(flux, to, wE * Ea - wH * Hb)",
        "store(flux, to, wE * Ea + wH * Hb)",
    ),
    Mistake(
        "maxwell",
        "a derivative in the wrong direction",
        "j, k = (i + 1) % 3, (i + 2) % 3",
        "j, k = (i + 2) % 3, (i + 1) % 3",
    ),
    Mistake(
        "maxwell",
        "the lift is that of the first face",
        "of + f * Np * Nfp, work,",
        "of + 0 * Np * Nfp, work,",
    ),
    Mistake(
        "maxwell",
        "the boundary data are forgotten",
        "E2 = mE * E2 + out * gather",
        "E2 = mE * E2 + 0 * gather",
    ),
    Mistake("maxwell", "a wall keeps its sign", "H1 = mH * H1", "H1 = mE * H1"),
    Mistake("maxwell", "matter is forgotten", "across * S1 - mu * H1", "across * S1 - H1"),
    Mistake(
        "maxwell",
        "the metric is transposed",
        "x1 * X + y1 * Y + z1 * Z",
        "x1 * X + x2 * Y + x3 * Z",
    ),
    Mistake(
        "acoustics", "the jump is a sum", "p, X = p - load(u, mine)", "p, X = p + load(u, mine)"
    ),
    Mistake("acoustics", "the central flux has one part", "wc * normal - wd * p", "wc * normal"),
    Mistake(
        "acoustics",
        "the divergence misses a direction",
        "first_two + load(work, at + 6 * field)",
        "first_two",
    ),
    Mistake(
        "acoustics",
        "the neighbor's nodes are mine",
        "p, X = gather(u, shift, places, here)",
        "p, X = load(u, mine)",
    ),
    Mistake(
        "acoustics",
        "density in place of its reciprocal",
        "1 / operator.rho.astype",
        "operator.rho.astype",
    ),
    Mistake(
        "linear",
        "the mirror is forgotten",
        "across = across + mirror * load",
        "across = across + load",
    ),
    Mistake("linear", "the flux matrix is a number", "load(faces, F + d * L)", "load(faces, F)"),
    Mistake("linear", "the metric is transposed", "(i * dim + d) * L", "(d * dim + i) * L"),
    Mistake("euler", "the neighbor runs the same way", "[:, :, ::-1]", "[:, :, :]"),
    Mistake(
        "euler",
        "a wall lets the flow through",
        "w1, w2 = w1 - normal * nx, w2 - normal * ny",
        "pass",
    ),
    Mistake(
        "euler",
        "the flux leaves with the wrong sign",
        "-operator.face_scale",
        "operator.face_scale",
    ),
    Mistake(
        "euler",
        "the pressure acts along r only",
        "store(work, s + both, w1 * vs + p * sx)",
        "store(work, s + both, w1 * vs)",
    ),
    Mistake(
        "hdg", "u and parts of q change places", "parts + (t - 1) * Np", "parts + (dim - t) * Np"
    ),
    Mistake("hdg", "a wall is none", "for turn in range(1 + boundary):", "for turn in range(1):"),
    Mistake("hdg", "what flows out flows in", "sign = 1.0 if turn else -1.0", "sign = 1.0"),
    Mistake(
        "hdg", "S is as if it did not depend on the trace", "if dS.size:", "if dS.size > dS.size:"
    ),
    Mistake("hdg", "u on a face is the trace", "work[to + points] = w * S", "work[to] += w * S"),
    Mistake(
        "hdg", "the metric is transposed", "part += rx[t - 1, o, k]", "part += rx[o, t - 1, k]"
    ),
    Mistake("hdg", "a node of the neighbor's order", "to_element[k, g, j]", "j"),
    Mistake(
        "hdg",
        "only the first element adds to a face",
        "if second[k, f] != side:",
        "if second[k, f]:",
    ),
    Mistake("hdg", "given traces are forgotten", "total -= H[k, row, j] * known[k, j]", "pass"),
    Mistake("hdg", "three of four steps are taken", "- x2 * u2 - x3 * u3", "- x2 * u2"),
    Mistake(
        "hdg",
        "the way back forgets a row",
        "range(p + width - 1, p - 1, -1)",
        "range(p + width - 1, p, -1)",
    ),
]
