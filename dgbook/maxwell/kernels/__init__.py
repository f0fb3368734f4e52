"""The GPU kernels of Maxwell's equations, one operator per file."""
