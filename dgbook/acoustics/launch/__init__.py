"""Launches of the acoustic kernels, in both bases."""
