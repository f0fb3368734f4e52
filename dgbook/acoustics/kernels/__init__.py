"""The GPU kernels of acoustic waves, one operator per file."""
