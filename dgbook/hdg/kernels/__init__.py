"""The GPU kernels of hybridized methods, one product per file."""
