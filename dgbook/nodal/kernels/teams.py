"""Device functions of teams of threads, which share a few elements."""

from dgbook.gpu import cuda, jit
from dgbook.gpu.limits import WARP


def make_meet(plan):
    """Device function for a barrier of the threads of one team."""
    lanes = plan.lanes

    @jit(device=True)
    def meet():
        if lanes == WARP:
            cuda.syncwarp()
        else:
            cuda.syncthreads()

    return meet
