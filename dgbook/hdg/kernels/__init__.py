"""The GPU kernels of hybridised methods, one product a file."""
