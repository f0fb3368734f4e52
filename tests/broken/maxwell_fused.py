"""Wrong fused kernels of Maxwell's equations: the right one but for one mistake in its text."""

import linecache
from dataclasses import dataclass

from dgbook.gpu.show import source
from dgbook.maxwell.kernels.fused import make_curl, make_flux, make_fused


@dataclass(frozen=True)
class Mistake:
    """What is wrong, and the text that makes it so."""

    name: str
    right: str
    wrong: str

    def make(self, shape, plan):
        """The wrong kernel; the mistake may be in one of its device functions."""
        texts = [source(factory) for factory in (make_flux, make_curl, make_fused)]
        count = sum(text.count(self.right) for text in texts)
        assert count == 1, f"{self.name}: the kernel's text has changed"
        namespace = dict(make_fused.__globals__)
        for i, text in enumerate(texts):
            text = text.replace(self.right, self.wrong)
            file = f"<{self.name}, part {i}>"
            linecache.cache[file] = (len(text), None, text.splitlines(True), file)
            exec(compile(text, file, "exec"), namespace)
        return namespace["make_fused"](shape, plan)


BARRIER = "        cuda.syncthreads()\n\n        m, d"
LAST_BARRIER = "        cuda.syncthreads()\n        p = thread\n        while p < state_words:"
MISTAKES = [
    Mistake("the jump is a sum", "E1 - e1, E2 - e2", "E1 + e1, E2 + e2"),
    Mistake("the electric flux turns the wrong way", "-tau if f % 2 else tau", "tau"),
    Mistake("a derivative in the wrong direction", "c[i, e, 3] -= d2 * z", "c[i, e, 3] -= d1 * z"),
    Mistake("a curl has the wrong sign", "c[i, e, 4] -= d3 * x", "c[i, e, 4] += d3 * x"),
    Mistake(
        "the neighbor's nodes in the order of ghosts", "opposite[way * Nfp + i]", "opposite[i]"
    ),
    Mistake("the neighbor's tangents are mine", "t, w = 8 * way, other", "t, w = 48 * f, other"),
    Mistake("the impedances are swapped", "(one - tau) * h1, B", "tau * h1, B"),
    Mistake(
        "the lift is that of the first face", "j = np.uint32(f * Nfp)", "j = np.uint32(0 * Nfp)"
    ),
    Mistake("the metric of a face is transposed", "g22 * A - g12 * B", "g11 * A - g12 * B"),
    Mistake("a wall keeps its sign", "E1, E2 = boundary[m] * e1", "E1, E2 = boundary[m + 1] * e1"),
    Mistake("the boundary data are forgotten", "E1, E2 = E1 + t1 * E, E2 + t2 * E", "pass"),
    Mistake("no barrier before the products", BARRIER, "        m, d"),
    Mistake(
        "no barrier before the update",
        LAST_BARRIER,
        LAST_BARRIER.replace("cuda.syncthreads()", "pass"),
    ),
    Mistake("the residual is not scaled", "r += a * res[k]", "r += res[k]"),
]
