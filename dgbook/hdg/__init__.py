"""Hybridized discontinuous Galerkin methods: the trace system and its solution, after roca2011."""

from dgbook.hdg import exact
from dgbook.hdg.blocks import BlockMatrix
from dgbook.hdg.exact import cylinder_mesh, flow_past_cylinder
from dgbook.hdg.krylov import Gmres, GmresError
from dgbook.hdg.local import State
from dgbook.hdg.problem import (
    ConvectionDiffusion,
    FarField,
    Isothermal,
    NavierStokes,
    Neumann,
    Poisson,
    Stream,
)
from dgbook.hdg.solver import NewtonError, Result, solve
from dgbook.hdg.system import System, assemble

__all__ = [
    "BlockMatrix",
    "ConvectionDiffusion",
    "FarField",
    "Gmres",
    "GmresError",
    "Isothermal",
    "NavierStokes",
    "Neumann",
    "NewtonError",
    "Poisson",
    "Result",
    "State",
    "Stream",
    "System",
    "assemble",
    "cylinder_mesh",
    "exact",
    "flow_past_cylinder",
    "solve",
]
