"""Launches of Maxwell's kernels: the paper's five, and a fused one in either basis."""
