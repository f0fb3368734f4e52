"""What tests ask of a launcher whose kernel does a whole stage, in the simulator and on a GPU."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from emulation import emulate

from dgbook.check import SimulatorError
from dgbook.nodal.launching import ALL, EDGE, INTERIOR
from dgbook.time import lsrk45


@dataclass
class Case:
    """A launcher, random states and boundary data, and what they should give.

    Attributes
    ----------
    launcher : FusedStage
    u, res : (fields, K, Np) array
        In the precision of the launcher.
    data : flat array of the device
    rhs : (fields, K, Np) float64
        du/dt by the reference.
    roundings : int
        By how many of the largest number a result may be wrong.
    """

    launcher: Any
    u: np.ndarray
    res: np.ndarray
    data: Any
    rhs: np.ndarray
    roundings: int = 60

    def assert_close(self, state, expected):
        computed = self.launcher.download(state)
        assert computed.dtype == self.u.dtype
        tolerance = self.roundings * np.finfo(computed.dtype).eps * np.abs(expected).max()
        assert np.abs(computed - expected).max() < tolerance

    def poisoned(self):
        """An output that nobody has written: NaN wherever the kernel forgets to write."""
        return self.launcher.device.empty(self.launcher.size, self.u.dtype)

    def stage(self, number, dt=0.01, launch=lambda launches: launches()):
        """res and new after a stage, each with what it should be."""
        a, b = lsrk45.A[number], lsrk45.B[number]
        u, res, new = self.launcher.upload(self.u), self.launcher.upload(self.res), self.poisoned()
        before = u.copy()
        launch(lambda: self.launcher.stage(u, res, new, self.data, a, b, dt))
        assert (u == before).all()
        expected = a * self.res.astype(np.float64) + dt * self.rhs
        return (res, expected), (new, self.u + b * expected)

    def check_stage(self, number=3, **options):
        for state, expected in self.stage(number, **options):
            self.assert_close(state, expected)

    def check_rhs(self):
        """du/dt alone; what `out` was before is not read."""
        u, out = self.launcher.upload(self.u), self.poisoned()
        before = u.copy()
        self.launcher.rhs(u, self.data, out)
        self.assert_close(out, self.rhs)
        assert (u == before).all()

    def check_first_stage(self):
        """Where a = 0 the residual is not read."""
        res, new = self.poisoned(), self.poisoned()
        self.launcher.stage(self.launcher.upload(self.u), res, new, self.data, 0.0, 0.5, 0.1)
        self.assert_close(res, 0.1 * self.rhs)
        self.assert_close(new, self.u + 0.05 * self.rhs)

    def check_ranges(self):
        """The edge, the last block or two, and then the interior have the bits of the whole."""
        launcher, new = self.launcher, [self.poisoned() for _ in range(2)]
        launcher.interior = launcher.operator.mesh.K - 1
        for state, ranges in zip(new, ([ALL], [EDGE, INTERIOR]), strict=True):
            u, res = launcher.upload(self.u), launcher.upload(self.res)
            for some in ranges:
                launcher.stage(u, res, state, self.data, 0.5, 0.5, 0.1, some)
        np.testing.assert_array_equal(*map(launcher.download, new))

    def check_recorded(self):
        """A stage that the device replays."""
        self.check_stage(launch=lambda launches: self.launcher.device.capture(launches)())

    def check_the_way_to_the_device(self):
        """States survive it, to rounding."""
        state = self.launcher.upload(self.u)
        wrong = np.abs(self.launcher.download(state) - self.u).max()
        assert wrong < 30 * np.finfo(self.u.dtype).eps * np.abs(self.u).max()
        assert self.launcher.zeros().shape == state.shape

    def stage_in_place(self):
        """A stage whose new state replaces the old one, which neighbors still need."""
        u = self.launcher.upload(self.u)
        self.launcher.stage(u, self.launcher.zeros(), u, self.data, 0.5, 0.5, 0.1)

    def check_tensor_cores(self, plain, tensor):
        """By this plan for tensor cores du/dt in fp32 is as exact as by the one without."""
        errors = []
        for plan in (plain, tensor):
            launcher, out = self.launcher.planned(plan), self.poisoned()
            launcher.rhs(launcher.upload(self.u), self.data, out)
            errors.append(np.sqrt(np.mean((launcher.download(out) - self.rhs) ** 2)))
        assert errors[1] < 1.5 * errors[0]

    def with_factors(self):
        """The same with the kernel for stages of a factored method."""
        return replace(self, launcher=self.launcher.with_factors())

    def check_factor(self, launch=lambda launches: launches()):
        """Both stages of a factor, by the kernel for such: the first does not read its array.

        The second changes its array in place, at the edge and in the interior apart, too.
        """
        u, fresh, kept = self.launcher.upload(self.u), self.poisoned(), []
        before = u.copy()
        first = (u, fresh, fresh, self.data, 0.0, 1.0, 0.1)
        launch(lambda: self.launcher.stage(*first))
        self.assert_close(fresh, self.u + 0.1 * self.rhs)
        for ranges in ([ALL], [EDGE, INTERIOR]):
            self.launcher.interior = self.launcher.operator.mesh.K - 1
            kept.append(self.launcher.upload(self.res))
            for some in ranges:
                second = (u, kept[-1], kept[-1], self.data, 1.0, 0.0, -0.3, some)
                launch(lambda second=second: self.launcher.stage(*second))
            self.assert_close(kept[-1], self.res - 0.3 * self.rhs)
        np.testing.assert_array_equal(*map(self.launcher.download, kept))
        assert (u == before).all()

    def check_rejected_factor(self, mistake):
        """A stage of a factor by a wrong kernel is wrong."""
        case = self.with_factors()
        launcher = case.launcher
        launcher.kernel = mistake.make(launcher.shape, launcher.plan, True)
        with pytest.raises(AssertionError):
            case.check_factor()

    def check_rejected_cuda_factor(self, mistake, folder):
        """The same of a wrong kernel in CUDA C++, which runs on the CPU."""
        case = self.with_factors()
        case.launcher.kernel = mistake.make(case.launcher.kernel)
        emulate(case.launcher, folder)
        with pytest.raises(AssertionError):
            case.check_factor()

    def check_rejected(self, mistake):
        """The simulator refuses a wrong kernel, or a stage by it is wrong; a race is refused."""
        launcher = self.launcher
        launcher.kernel = mistake.make(launcher.shape, launcher.plan)
        try:
            stages = self.stage(2)
        except SimulatorError:
            return
        assert "barrier" not in mistake.name, "races are refused, whatever they compute"
        errors = [
            np.abs(launcher.download(state) - expected).max() / np.abs(expected).max()
            for state, expected in stages
        ]
        assert not np.max(errors) < 1e-3
