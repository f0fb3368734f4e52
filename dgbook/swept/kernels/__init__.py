"""The kernels of the schemes; Hybrid launches those of Shared."""
