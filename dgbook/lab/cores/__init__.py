"""What a GPU's speed is compared with: the same methods, compiled for all processor cores."""
