"""The kernels of hybridized methods, on GPUs and on `cores`."""
