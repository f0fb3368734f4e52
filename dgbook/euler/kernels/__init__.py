"""The GPU kernels of the Euler equations, one operator per file."""
