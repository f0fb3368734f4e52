"""The kernels of all schemes; Hybrid launches those of Shared."""
