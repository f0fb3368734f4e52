"""The kernels of the four schemes; Hybrid launches those of Shared."""
