"""Kernels, and parts of kernels, that families of equations share."""
