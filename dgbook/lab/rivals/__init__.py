"""What the kernels are compared with: the same operators by libraries, and on ranks."""
