"""What the families of nodal DG share: traces, boundary conditions, launches, solvers."""
