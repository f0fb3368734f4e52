"""Wrong fused kernels of acoustics: the right one but for one mistake in its text."""

import linecache
from dataclasses import dataclass

from dgbook.acoustics.kernels.fused import make_columns, make_flux, make_fused
from dgbook.gpu.show import source


@dataclass(frozen=True)
class Mistake:
    """What is wrong, and the text that makes it so."""

    name: str
    right: str
    wrong: str

    def make(self, shape, plan):
        """The wrong kernel; the mistake may be in one of its device functions."""
        texts = [source(factory) for factory in (make_flux, make_columns, make_fused)]
        count = sum(text.count(self.right) for text in texts)
        assert count == 1, f"{self.name}: the kernel's text has changed"
        namespace = dict(make_fused.__globals__)
        for i, text in enumerate(texts):
            text = text.replace(self.right, self.wrong)
            file = f"<{self.name}, part {i}>"
            linecache.cache[file] = (len(text), None, text.splitlines(True), file)
            exec(compile(text, file, "exec"), namespace)
        return namespace["make_fused"](shape, plan)


BARRIER = "        cuda.syncthreads()\n"
MISTAKES = [
    Mistake("the jump is a sum", "= u[w] - p, into", "= u[w] + p, into"),
    Mistake(
        "the neighbor's face is taken for mine",
        "inflow(way // 6, u, w)",
        "inflow(f, u, w)",
    ),
    Mistake(
        "what flows out of the neighbor is subtracted",
        "into + inflow(way // 6",
        "into - inflow(way // 6",
    ),
    Mistake(
        "face 0 has the wrong sign",
        "return -(field[v + w1] + field[v + w2]",
        "return (field[v + w1] + field[v + w2]",
    ),
    Mistake(
        "the neighbor's nodes in the order of ghosts", "opposite[way * Nfp + i]", "opposite[i]"
    ),
    Mistake("a wall keeps the velocity", "= into - boundary[m + 1] * into", "= into - into"),
    Mistake("the first field's data comes in for all", "(d + 1) * faces", "0 * faces"),
    Mistake("a derivative in the wrong direction", "1] += d1 * p", "1] += d2 * p"),
    Mistake("div v forgets a direction", "c[i, e, 0] += d3 * state[w + w3]", "pass"),
    Mistake(
        "face 0 counts for one component only", "if f == 0 or f == x:", "if f == x or f + 1 == x:"
    ),
    Mistake(
        "the lift is that of the first face", "j = np.uint32(f * Nfp)", "j = np.uint32(0 * Nfp)"
    ),
    Mistake("the metric is not symmetric", "= g12 * x + g22 * y", "= g13 * x + g22 * y"),
    Mistake(
        "no barrier before the fluxes",
        BARRIER + "        p = thread\n        while p < flux",
        "        p = thread\n        while p < flux",
    ),
    Mistake("no barrier before the lift", BARRIER + "\n        for f", "\n        for f"),
    Mistake(
        "no barrier before du/dt takes the place of the state",
        BARRIER + "\n        for e",
        "\n        for e",
    ),
    Mistake(
        "no barrier before the update",
        BARRIER + "        p = thread\n        while p < state_words:\n            k",
        "        p = thread\n        while p < state_words:\n            k",
    ),
    Mistake("the residual is not scaled", "r += a * res[k]", "r += res[k]"),
    Mistake("the new state forgets the old", "= u[k] + b * r", "= b * r"),
]
