"""Wrong stages of a factored method in the linear family: mistakes in the kernel's update."""

from mistakes import Mistake

from dgbook.linear.kernels import make_fused

MAKE = (make_fused,)
FACTORED = [
    Mistake("the state is forgotten", "r += b * u[f, j]", "r += zero", MAKE),
    Mistake("the array is forgotten", "if a != zero:", "if a < zero:", MAKE),
    Mistake("the state is that before", "r += b * u[f, j]", "r += b * res[f, j]", MAKE),
    Mistake("the array is added where the state is", "if a != zero:", "if b != zero:", MAKE),
]
