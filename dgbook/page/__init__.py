"""How things are shown: plots, players, kernels' sources."""
