"""The solver: allocate, loop, return; on a GPU and in the simulator it launches the kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dgbook.arguments import check_choice
from dgbook.gpu import Device
from dgbook.maxwell import reference
from dgbook.maxwell.cores import Cores, LocalSteps
from dgbook.maxwell.launch.bernstein_fused import BernsteinFusedLauncher
from dgbook.maxwell.launch.fused import FusedLauncher, FusedPlan, LocalLauncher
from dgbook.maxwell.launch.incident import integrals, launches
from dgbook.maxwell.launch.paper import PaperLauncher
from dgbook.maxwell.plan import BernsteinFusedPlan, FusedShape, PaperPlan, faster_basis
from dgbook.maxwell.problem import FIELDS, amplitude
from dgbook.mesh import Mesh
from dgbook.nodal.cores import CORE_ARRAYS
from dgbook.nodal.incoming import Launch
from dgbook.nodal.linear import LinearSolver, require_damping
from dgbook.nodal.local import Clusters
from dgbook.nodal.local_device import Give

PATHS = {"fused": (FusedLauncher, FusedPlan), "paper": (PaperLauncher, PaperPlan)}
"""By name the launcher and the plan that it takes."""
LAUNCHERS = {
    "nodal": PATHS,
    "bernstein": {"fused": (BernsteinFusedLauncher, BernsteinFusedPlan)},
}
"""By basis its paths."""
REFERENCE_ARRAYS = (12, 1)
"""Of states, and of values on faces, that a run by the reference has at the same time: measured."""


class Solver(LinearSolver):
    """Nodal DG in space and low-storage Runge-Kutta in time for Maxwell's equations.

    ::

        mode = exact.BoxMode(1, 2, 2)
        solver = maxwell.Solver(box((4, 4, 4)), 4)
        u = solver.interpolate(lambda x, y, z: mode(x, y, z, 0.0))
        u = solver.run(u, t_end=1.0)

    States are NumPy arrays of shape (6, K, Np): Ex, Ey, Ez, Hx, Hy, Hz.

    Parameters
    ----------
    mesh : Mesh
        Of tetrahedra.
    order : int
        Polynomial degree N.
    dtype : {"float64", "float32"}
    device : Device or {"auto", "cuda", "cpu", "reference", "simulator"}
        "cpu" is compiled kernels on all processor cores, "reference" the NumPy operator.
    flux : {"upwind", "central"}
        The central one in the nodal basis only.
    epsilon, mu : number or (K,) array
        Relative permittivity and permeability; the speed of light is 1 where both are 1.
    boundary : condition or dict
        For each name in ``mesh.boundary`` "pec", "absorbing", a function of (x, y, z, t) that
        returns the six fields coming in, such as a `PlaneWave`, or a `Scatterer`. A condition alone
        stands for all names. Functions other than plane waves are evaluated by Python, once a
        stage.
    path : {"fused", "paper"}, optional
        Which kernels: one a stage, or, in the nodal basis, the paper's. By default "fused", but
        "paper" for the central flux, which the fused kernels do not know.
    plan : FusedPlan, BernsteinFusedPlan or PaperPlan, optional
        How they are launched; if not given, what the tuner remembers for this GPU, or a default.
    method : {"lsrk45", "ndb14", "ndb14_factored", "auto"}
        The Runge-Kutta method: five stages, or fourteen with a step that is 4.0 times as long where
        an upwind flux limits it. On uniform meshes from N = 5 on its own error limits the step
        before that, see `accurate_dt`. In factored form the fourteen stages have less to read and
        to write and round less, see `dgbook.time.ndb14_factored`; on a GPU on path "fused" only.
        "auto" is the one expected to need the least time to ``t_end`` with the default step, see
        `dgbook.nodal.linear.usual_method`. With steps of your own LSRK4(5) has the fewest stages.
    basis : {"auto", "nodal", "bernstein"}
        Of the polynomials. "auto" is that of the plan; without one it is the basis whose fused
        kernel was the faster where both were timed, see `faster_basis`, and else the nodal one.

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
        flux: str = "upwind",
        epsilon: float | np.ndarray = 1.0,
        mu: float | np.ndarray = 1.0,
        boundary: str | Callable | dict[str, str | Callable] = "pec",
        path: str | None = None,
        plan: FusedPlan | BernsteinFusedPlan | PaperPlan | None = None,
        method: str = "lsrk45",
        basis: str = "auto",
    ) -> None:
        check_choice("basis", basis, ("auto", *LAUNCHERS))
        super().__init__(mesh, order, dtype, device, method)
        path = path or ("fused" if flux == "upwind" or basis == "bernstein" else "paper")
        self.basis = self._usual_basis(path, plan) if basis == "auto" else basis
        if self.basis == "bernstein" and flux != "upwind":
            raise ValueError(
                f"flux = {flux!r} in basis {self.basis!r}; allowed: 'upwind', or basis 'nodal'"
            )
        self.take_path(path, plan, LAUNCHERS[self.basis], flux, ("upwind",))
        self.operator = reference.assemble(
            mesh, self.element, flux, epsilon, mu, boundary, self.dtype.name, self.basis
        )
        self.jacobian = self.operator.jacobian

    def cfl_dt(self) -> float:
        """A stable step, 4 / ((N+1)^2 max_k c_k sum_f Fs), 2 to 9 times as short as `stable_dt`.

        It is the diameter of the smallest inscribed ball over c (N+1)^2, as in ``dgbook.linear``.
        """
        rate = self.operator.speed * self.operator.face_scale.sum(axis=1)
        return 4 / ((self.element.order + 1) ** 2 * float(rate.max()))

    def _damped(self) -> np.ndarray:
        require_damping(self.operator.flux)
        Z, Zp = self.operator.impedance, self.operator.neighbor_impedance
        stiffness = 2 * np.maximum(Z, Zp) / (Z + Zp)  # of E where Z is the larger, else of H
        return self.operator.speed * stiffness.max(axis=1)

    def _speeds(self) -> np.ndarray:
        return self.operator.speed

    def _numbers(self) -> tuple[int, int]:
        """On the fused path the state before and after and the residual.

        On the paper's path state, residual, du/dt, what is lifted and the 18 derivatives; of the
        reference, as measured, 12 states.
        """
        arrays = {"fused": (3, 0), "paper": (7, 1), "cpu": CORE_ARRAYS}
        arrays["reference"] = REFERENCE_ARRAYS
        kind = self.device.kind
        states, faces = arrays[kind if kind in arrays else self.path]
        return states * self.element.Np + faces * 4 * self.element.Nfp, 60

    def _usual_basis(self, path: str, plan: FusedPlan | BernsteinFusedPlan | PaperPlan) -> str:
        """That of a plan, or the faster one."""
        if plan is not None:
            return "bernstein" if isinstance(plan, BernsteinFusedPlan) else "nodal"
        if path != "fused" or self.device.is_host:
            return "nodal"
        return faster_basis(FusedShape(self.element.order, self.dtype.name, True), self.device)

    def _unknowns(self, u: Any) -> Any:
        return self.operator.basis.from_nodal(u)

    def _nodal(self, unknowns: Any) -> Any:
        return self.operator.basis.to_nodal(unknowns)

    def _launches(self) -> Sequence[Launch] | None:
        if self.device.kind == "cpu":
            return super()._launches()
        return launches(self.operator, self.device)

    def _integrals(self, clusters: Clusters) -> Sequence[Give] | None:
        return integrals(self.operator, self.device, clusters)

    def outgoing(self, elements: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `NodalSolver.outgoing`."""
        return reference.outgoing(self.operator, elements, faces)

    def _amplitude(self) -> float:
        return max((amplitude(function) for _, function in self.operator.sources), default=0.0)

    def _energy_weights(self, elements: slice | np.ndarray) -> np.ndarray:
        epsilon, mu = self.operator.epsilon[elements], self.operator.mu[elements]
        return np.stack(3 * [epsilon] + 3 * [mu]).astype(np.float64)
