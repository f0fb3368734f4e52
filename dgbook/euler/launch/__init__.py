"""Launches of the Euler equations' kernels: the paper's, and the fused one."""
