"""The paper's operator on a device: gather, lift, differentiate, assemble, update."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dgbook.gpu import Device, Kernel
from dgbook.gpu.plan import require_legal
from dgbook.maxwell.kernels.assemble import make_assemble
from dgbook.maxwell.kernels.differentiate import make_differentiate
from dgbook.maxwell.kernels.differentiate_matrix import make_differentiate_matrix
from dgbook.maxwell.kernels.gather import make_gather
from dgbook.maxwell.kernels.lift import make_lift
from dgbook.maxwell.kernels.lift_matrix import make_lift_matrix
from dgbook.maxwell.microblocks import face_pairs, microblocks
from dgbook.maxwell.plan import FIELDS, HALF_WARP, LocalPlan, PaperPlan, Shape, shape_of
from dgbook.maxwell.reference import Operator
from dgbook.nodal.launching import StageByKernels
from dgbook.time import lsrk45

UPDATE_THREADS = 256
MAX_GRID_Y = 65_535  # blocks in a grid's second dimension


@lru_cache(maxsize=256)
def kernel(name: str, shape: Shape, *options: Any) -> Kernel:
    """A kernel, compiled once for equal arguments.

    Parameters
    ----------
    name : {"gather", "lift", "differentiate", "assemble", "update"}
    shape : Shape
    *options
        For "gather" the room for descriptors in a block and the plan; for "lift" and
        "differentiate" the plan, whose strategy chooses the kernel.
    """
    if name == "update":
        return lsrk45.make_update(shape.dtype)
    if name in ("assemble", "gather"):
        return {"assemble": make_assemble, "gather": make_gather}[name](shape, *options)
    (plan,) = options
    make = {
        ("lift", "field"): make_lift,
        ("lift", "matrix"): make_lift_matrix,
        ("differentiate", "field"): make_differentiate,
        ("differentiate", "matrix"): make_differentiate_matrix,
    }[name, plan.strategy]
    return make(shape, plan)


class PaperLauncher(StageByKernels):
    """An operator's arrays on a device in the paper's layout, and its kernels launched on them.

    ::

        launcher = PaperLauncher(operator, device)
        u, res = launcher.upload(values), launcher.zeros()
        launcher.stage(u, res, u, data, a, b, dt)

    A state is flat, with entry (field, microblock, place): K_M elements a microblock, renumbered so
    that those of a block are neighbors, see ``dgbook.maxwell.microblocks``. A stage is five
    launches, each of which can be made, and timed, on its own. They leave in the work arrays

    flux, lifted     sJ n.(F - F*) at the face nodes; the same lifted, J^-1 LIFT flux
    derivative, du   d/dx, d/dy, d/dz of each field; du/dt

    Parameters
    ----------
    operator : reference.Operator
        Its dtype is the kernels'.
    device : Device
        "cuda" or "simulator".
    plan : PaperPlan, optional
        If not given, what the tuner remembers for this GPU, or a default.

    Raises
    ------
    ValueError
        If the plan is not legal, or the mesh too large for 32-bit indices.
    """

    update_threads = UPDATE_THREADS

    def __init__(self, operator: Operator, device: Device, plan: PaperPlan | None = None) -> None:
        dtype = operator.lift.dtype.name
        super().__init__(operator, device, dtype)
        element = operator.element
        plan = plan or PaperPlan.chosen(shape_of(element.order, dtype), device)
        self.shape = Shape(element.Np, element.Nfp, plan.K_M, dtype)
        require_legal(plan, self.shape)
        self.layout = microblocks(operator.mesh, self.shape, plan.gather.M_B, plan.gather.partition)
        self.size = self.layout.n_M * self.shape.N_pM  # of one field
        self._check_indices(3 * FIELDS * self.size)
        pairs = face_pairs(operator, self.layout)
        self.places = pairs.places
        per_slot = self.layout.per_slot
        derivative = operator.derivative
        material = np.stack([1 / operator.epsilon, 1 / operator.mu], axis=1)
        integers = {"counts": pairs.counts, "integers": pairs.integers, "lists": pairs.lists}
        reals = {
            "reals": pairs.reals,
            "lift": operator.lift.T,
            "lift rows": operator.lift,
            "derivative": derivative.transpose(0, 2, 1),
            "derivative rows": derivative.transpose(1, 0, 2),
            "inverse_jacobian": per_slot(1 / operator.jacobian, 0),
            "rst_xyz": per_slot(operator.rst_xyz, 0),
            "material": per_slot(material, 1),
        }
        self.arrays = self._on_device(integers, reals)
        faces = FIELDS * self.layout.n_M * self.shape.N_fM
        self.work = {
            "flux": device.zeros(faces, self.real),
            "lifted": self.zeros(),
            "derivative": device.zeros(3 * FIELDS * self.size, self.real),
            "du": self.zeros(),
        }
        self._load(plan)

    def planned(self, plan: PaperPlan) -> PaperLauncher:
        """The same arrays, with kernels for another plan; a new layout if it asks for one.

        The layout is K_M, M_B and the partition: where one of them differs, states of this launcher
        are not states of the other.

        Raises
        ------
        ValueError
            If the plan is not legal.
        """

        def layout(p: PaperPlan) -> tuple:
            return p.K_M, p.gather.M_B, p.gather.partition

        if layout(plan) != layout(self.plan):
            return PaperLauncher(self.operator, self.device, plan)
        require_legal(plan, self.shape)
        return super().planned(plan)

    def _load(self, plan: PaperPlan) -> None:
        self.plan, shape = plan, self.shape
        for name in ("lift", "differentiate"):
            if trouble := self._beyond_grid(getattr(plan, name)):
                raise ValueError(f"plan.{name} = {getattr(plan, name)}: {trouble}")
        self.kernels = {
            "gather": kernel("gather", shape, self.places, plan.gather),
            "lift": kernel("lift", shape, plan.lift),
            "differentiate": kernel("differentiate", shape, plan.differentiate),
            "assemble": kernel("assemble", shape),
            "update": kernel("update", shape),
        }

    # -- states ----------------------------------------------------------------------------

    def zeros(self) -> Any:
        """A state of zeros."""
        return self.device.zeros(FIELDS * self.size, self.real)

    def _put(self, state: Any, some: slice, values: Any) -> None:
        """As `dgbook.nodal.launching.Launcher._put`; padding stays zero."""
        self.layout.pack(values, state, some)

    def part(self, states: Any, places: slice) -> Any:
        """States, flat (..., entries), of some elements: (..., 6, places, Np) on the device."""
        return self.layout.unpack(states, self.shape.Np, places)

    # -- launches --------------------------------------------------------------------------

    def gather(self, u: Any, data: Any) -> None:
        """work["flux"] = sJ n.(F - F*) at all face nodes of all elements."""
        a = self.arrays
        self.kernels["gather"][self.layout.blocks, (self.shape.Nfp, self.plan.gather.w_p)](
            u, data, a["counts"], a["integers"], a["reals"], a["lists"], self.work["flux"]
        )

    def lift(self) -> None:
        """work["lifted"] = J^-1 LIFT flux."""
        plan = self.plan.lift
        matrix = self.arrays["lift" if plan.strategy == "field" else "lift rows"]
        self.kernels["lift"][self._launch(plan)](
            self.work["flux"], matrix, self.arrays["inverse_jacobian"], self.work["lifted"]
        )

    def differentiate(self, u: Any) -> None:
        """work["derivative"] = d/dx, d/dy, d/dz of each field of u."""
        plan = self.plan.differentiate
        matrix = self.arrays["derivative" if plan.strategy == "field" else "derivative rows"]
        self.kernels["differentiate"][self._launch(plan)](
            u, matrix, self.arrays["rst_xyz"], self.work["derivative"]
        )

    def assemble(self, out: Any) -> None:
        """out = du/dt from the derivatives and the lifted fluxes."""
        blocks = -(-self.size // UPDATE_THREADS)
        self.kernels["assemble"][blocks, UPDATE_THREADS](
            self.work["derivative"], self.work["lifted"], self.arrays["material"], out
        )

    def rhs(self, u: Any, data: Any, out: Any) -> None:
        """out = du/dt, all but its padding; `data` are g on the boundary, flat (6 nb Nfp,)."""
        self.gather(u, data)
        self.lift()
        self.differentiate(u)
        self.assemble(out)

    def _beyond_grid(self, plan: LocalPlan) -> str:
        """Why a grid would be too large, or an empty string."""
        groups = -(-self.layout.n_M // (plan.w_p * plan.w_i * plan.w_s))
        if plan.strategy == "matrix" and groups > MAX_GRID_Y:
            return f"{groups} groups of microblocks; allowed: {MAX_GRID_Y}, with more w_i or w_s"
        return ""

    def _launch(self, plan: LocalPlan) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Grid and block of an element-local kernel."""
        groups = -(-self.layout.n_M // (plan.w_p * plan.w_i * plan.w_s))
        if plan.strategy == "matrix":
            segments = -(-self.shape.N_pM // plan.N_R)
            return (segments, groups, FIELDS), (plan.N_R, plan.w_p)
        halves = self.shape.N_pM // HALF_WARP
        rows = (plan.w_p, halves) if plan.order == "mitigating" else (halves, plan.w_p)
        return (groups, FIELDS), (HALF_WARP, *rows)
