"""The solver: allocate, loop, return; on a GPU and in the simulator it launches the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dgbook.acoustics import reference
from dgbook.acoustics.cores import Cores, LocalSteps
from dgbook.acoustics.exact import amplitude
from dgbook.acoustics.launch.bernstein_fused import launcher
from dgbook.acoustics.launch.fused import FusedLauncher, LocalLauncher
from dgbook.acoustics.launch.nodal import NodalLauncher
from dgbook.acoustics.launch.sparse import BernsteinLauncher
from dgbook.acoustics.plan import BernsteinFusedPlan, BernsteinPlan, ElementPlan, NodePlan
from dgbook.acoustics.problem import FIELDS
from dgbook.arguments import check_choice
from dgbook.gpu import Device
from dgbook.mesh import Mesh
from dgbook.nodal.cores import CORE_ARRAYS
from dgbook.nodal.fused import FusedPlan
from dgbook.nodal.linear import LinearSolver, require_damping

PATHS = ("fused", "paper")
FUSED_FLUXES = ("upwind", "penalty")
LAUNCHERS = {
    "nodal": {
        "fused": (FusedLauncher, FusedPlan),
        "paper": (NodalLauncher, NodePlan, ElementPlan),
    },
    "bernstein": {
        "fused": (launcher, BernsteinFusedPlan, FusedPlan),
        "paper": (BernsteinLauncher, BernsteinPlan),
    },
}
"""By basis and path what makes the launcher, and the plans that it takes; the first is usual."""

REFERENCE_ARRAYS = {"nodal": (8, 2), "bernstein": (10, 10)}
"""Of states, and of values on faces, that a run by the reference has at the same time: measured."""

Plan = NodePlan | ElementPlan | BernsteinPlan | FusedPlan | BernsteinFusedPlan


class Solver(LinearSolver):
    """DG in space and low-storage Runge-Kutta in time for acoustic waves, in either basis.

    ::

        mode = exact.CubeMode()
        solver = acoustics.Solver(box((4, 4, 4), -1.0, 1.0), 4, basis="bernstein")
        u = solver.interpolate(lambda x, y, z: mode(x, y, z, 0.0))
        u = solver.run(u, t_end=1.0)

    States are NumPy arrays of shape (4, K, Np): pressure and the three velocities. They hold nodal
    values in *both* bases; a run in the Bernstein basis goes to control points once, before its
    first step, and back whenever a state is asked for.

    Parameters
    ----------
    mesh : Mesh
        Of tetrahedra.
    order : int
        Polynomial degree N, 1 to 15.
    dtype : {"float64", "float32"}
    device : Device or {"auto", "cuda", "cpu", "reference", "simulator"}
        "cpu" is compiled kernels on all processor cores, "reference" the NumPy operator.
    basis : {"nodal", "bernstein"}
    flux : {"upwind", "penalty", "central"}
        See ``problem.flux_weights``. The central one runs on the CPU, and by the paper's nodal
        kernels.
    kappa, rho : number or (K,) array
        Bulk modulus and density; the speed of sound is sqrt(kappa / rho).
    boundary : condition or dict
        For each name in ``mesh.boundary`` "soft", "rigid", "absorbing", or a function of
        (x, y, z, t) that returns the four fields coming in. A condition alone stands for all names.
        Functions are evaluated by Python, once a stage: a GPU then waits.
    path : {"fused", "paper"}, optional
        Which kernels: one a stage, or the paper's. By default "fused", but "paper" for the central
        flux, which the fused kernels do not know.
    plan : plan of the path's kernels in this basis, optional
        How they are launched; if not given, what the tuner remembers for this GPU, or a default.
        The fused kernels of the Bernstein basis are two, see
        `dgbook.acoustics.launch.bernstein_fused.launcher`; the plan says which one runs.
    method : {"lsrk45", "ndb14", "ndb14_factored", "auto"}
        The Runge-Kutta method: five stages, or fourteen with a step that is 4.0 times as long where
        an upwind flux limits it. On uniform meshes from N = 5 on its own error limits the step
        before that, see `accurate_dt`. In factored form the fourteen stages have less to read and
        to write and round less, see `dgbook.time.ndb14_factored`; on a GPU on path "fused" only.
        "auto" is the one expected to need the least time to ``t_end`` with the default step, see
        `dgbook.nodal.linear.usual_method`. With steps of your own LSRK4(5) has the fewest stages.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above; the message names it.
    RuntimeError
        For "cuda" where there is no CUDA device.

    Attributes
    ----------
    x : (3, K, Np) float64
        Coordinates of the nodes.
    operator : reference.Operator
    device : Device
    basis, path : str
    """

    fields = FIELDS
    reference = reference
    cores = Cores
    local_cores = LocalSteps
    local_stage = LocalLauncher

    def __init__(
        self,
        mesh: Mesh,
        order: int,
        dtype: str = "float64",
        device: Device | str = "auto",
        basis: str = "nodal",
        flux: str = "upwind",
        kappa: float | np.ndarray = 1.0,
        rho: float | np.ndarray = 1.0,
        boundary: str | Callable | dict[str, str | Callable] = "soft",
        path: str | None = None,
        plan: Plan | None = None,
        method: str = "lsrk45",
    ) -> None:
        check_choice("basis", basis, LAUNCHERS)
        path = path or ("fused" if flux in FUSED_FLUXES else "paper")
        super().__init__(mesh, order, dtype, device, method)
        self.take_path(path, plan, LAUNCHERS[basis], flux, FUSED_FLUXES)
        self.operator = reference.assemble(
            mesh, order, basis, flux, kappa, rho, boundary, self.dtype.name
        )
        self.basis, self.jacobian = basis, self.operator.jacobian
        if flux == "central" and basis == "bernstein" and not self.device.is_host:
            raise ValueError(
                f"flux = {flux!r} in basis {basis!r} on a device; allowed: 'upwind', 'penalty', "
                "basis 'nodal', or the CPU"
            )

    def cfl_dt(self) -> float:
        """A stable step, 4 / ((N+1)^2 max_k c_k sum_f Fs), Fs times ``Operator.stiffness``.

        Without stiffness it is 2 to 9 times as short as `stable_dt`.
        Of a uniform medium it is the diameter of the smallest inscribed ball over c (N+1)^2.
        """
        faces = (self.operator.face_scale * self.operator.stiffness).sum(axis=1)
        return 4 / ((self.element.order + 1) ** 2 * float((self.operator.speed * faces).max()))

    def _damped(self) -> np.ndarray:
        require_damping(self.operator.flux)
        Z, (a, _, c, _) = self.operator.impedance[:, None], self.operator.weights
        stiffness = 2 * np.maximum(a * Z, c / Z)
        return self.operator.speed * stiffness.max(axis=1)

    def _speeds(self) -> np.ndarray:
        return self.operator.speed

    def _numbers(self) -> tuple[int, int]:
        """The state, the residual, and du/dt or the new state; with a thread an element the fluxes.

        Those of the reference are measured; in the Bernstein basis L_0 gathers eight values for
        each that it makes.
        """
        states, faces = 3, int(isinstance(self._plan, ElementPlan))
        if self.device.is_host:
            on_cores = self.device.kind == "cpu"
            states, faces = CORE_ARRAYS if on_cores else REFERENCE_ARRAYS[self.basis]
        return states * self.element.Np + faces * 4 * self.element.Nfp, 40

    def _unknowns(self, u: Any) -> Any:
        return self.operator.basis.from_nodal(u)

    def _nodal(self, unknowns: Any) -> Any:
        return self.operator.basis.to_nodal(unknowns)

    def outgoing(self, elements: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `NodalSolver.outgoing`."""
        return reference.outgoing(self.operator, elements, faces)

    def _amplitude(self) -> float:
        return max((amplitude(function) for _, function in self.operator.sources), default=0.0)

    def _energy_weights(self, elements: slice | np.ndarray) -> np.ndarray:
        kappa, rho = self.operator.kappa[elements], self.operator.rho[elements]
        return np.stack([1 / kappa, *3 * [rho]]).astype(np.float64)
