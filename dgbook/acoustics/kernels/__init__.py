"""The GPU kernels of the acoustic wave equations, one operator a file."""
