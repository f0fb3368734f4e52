"""The GPU kernels of hybridized methods, one product a file."""
