"""Launches of Maxwell's kernels: the paper's five, and the fused one."""
