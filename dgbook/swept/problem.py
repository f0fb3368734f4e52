"""The three problems of the paper: equation, discretization, boundary and initial condition."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dgbook.swept.arithmetic import Arithmetic

FIELDS, REACHES = (1, 3), (1, 2)
"""The numbers of unknowns and of neighbors for which `dgbook.swept.point` has functions."""


@dataclass(frozen=True)
class Problem(ABC):
    """A one-dimensional equation, and how its solution at n points advances by a time step.

    A time step has one substep or two, each of which changes the states as

        new_i = old_i + w_s slope(u_{i-r}, ..., u_i, ..., u_{i+r}).

    Heat has one (forward Euler), with u = old. The others have two, the midpoint rule: the first,
    the predictor, with u = old and half the weight, the second with u the predictor's result.
    All that differs between problems is the slope, a function of the 2r+1 states around a point.

    Attributes
    ----------
    name : str
    fields : tuple of str
        Names of the unknowns, 1 or 3.
    reach : int
        r: how many points to either side a substep reads, 1 or 2.
    faces : bool
        Whether slopes are differences of fluxes, of which neighbors have one in common: then
        `make_faces` makes what they consist of.
    boundary : {"periodic", "mirrored", "fixed"}
        What is behind the ends: the other end; what is before them, the end point being the mirror;
        the end point's own state, which never changes.
    """

    name: ClassVar[str]
    fields: ClassVar[tuple[str, ...]]
    reach: ClassVar[int]
    boundary: ClassVar[str]
    faces: ClassVar[bool] = False

    @property
    @abstractmethod
    def weights(self) -> tuple[float, ...]:
        """w_s of each substep."""

    @property
    def ends(self) -> str:
        """What a node has to know of the boundary: "none" if periodic, for it is just joined."""
        return "none" if self.boundary == "periodic" else self.boundary

    @abstractmethod
    def spacing(self, n: int) -> float:
        """Distance of two points out of n."""

    @abstractmethod
    def time_step(self, n: int) -> float:
        """Length of a time step at n points."""

    @abstractmethod
    def points(self, n: int) -> np.ndarray:
        """Coordinates of the points, (n,)."""

    @abstractmethod
    def initial(self, n: int) -> np.ndarray:
        """The initial condition, (fields, n)."""

    @abstractmethod
    def make_slope(self, real: type, arithmetic: Arithmetic) -> Callable:
        """The function ``slope(stencil)``.

        Parameters
        ----------
        real : numpy.float32 or numpy.float64
            All its constants are of this type, so that fp32 code holds no fp64 arithmetic.
        arithmetic : Arithmetic
            What compiles it.

        Returns
        -------
        function
            Of the tuple of 2r+1 states, left to right, to the slope. States and slope are scalars
            where there is one field, else tuples of them; with `NUMPY` also arrays.
        """


def _positive(name: str, value: float) -> None:
    if not (isinstance(value, int | float | np.number) and 0 < value < math.inf):
        raise ValueError(f"{name} = {value!r}; allowed: a positive, finite number")


class FixedSteps(Problem):
    """A problem whose distance of points dx and time step dt do not depend on their number."""

    dx: float
    dt: float

    def spacing(self, n: int) -> float:
        return self.dx

    def time_step(self, n: int) -> float:
        return self.dt

    def points(self, n: int) -> np.ndarray:
        return self.dx * np.arange(n)


@dataclass(frozen=True)
class Heat(FixedSteps):
    """Heat conduction with insulated ends: T_t = alpha T_xx (magee2017, appendix B).

    Forward differences in time, central ones in space (equation 4):

        T_i' = T_i + Fo (T_{i-1} - 2 T_i + T_{i+1}),    Fo = alpha dt / dx^2.

    The end points are mirrors: T_{-1} = T_1, so that T_x = 0 there to second order. Stable for
    Fo <= 1/2; the error is O(dx^2) at fixed Fo, and for smooth data O(dx^4) at Fo = 1/6.

    Parameters
    ----------
    dx : float
        Distance of points; n of them make a rod of length (n - 1) dx.
    dt : float
        Time step.
    alpha : float
        Thermal diffusivity, by default that of aluminum.
    """

    dx: float = 1e-3
    dt: float = 5e-3
    alpha: float = 8.418e-5

    name = "heat"
    fields = ("T",)
    reach = 1
    boundary = "mirrored"

    def __post_init__(self) -> None:
        for name in ("dx", "dt", "alpha"):
            _positive(name, getattr(self, name))
        if self.fourier > 0.5:
            raise ValueError(
                f"dt = {self.dt}; allowed: at most {0.5 * self.dx**2 / self.alpha:g}, where "
                "alpha dt / dx^2 is 1/2: a longer step is unstable"
            )

    @property
    def fourier(self) -> float:
        """Fo = alpha dt / dx^2."""
        return self.alpha * self.dt / self.dx**2

    @property
    def weights(self) -> tuple[float, ...]:
        return (self.fourier,)

    def initial(self, n: int) -> np.ndarray:
        """100 x (1 - x/L): the ends are colder than they will stay."""
        x, length = self.points(n), self.dx * (n - 1)
        return (100 * x * (1 - x / length))[None]

    def make_slope(self, real: type, arithmetic: Arithmetic) -> Callable:
        """T_{i-1} - 2 T_i + T_{i+1}, as a sum of two differences.

        Differences of close numbers are exact.
        """

        @arithmetic.jit
        def slope(stencil):
            left, mine, right = stencil
            return (left - mine) + (right - mine)

        return slope


@dataclass(frozen=True)
class KuramotoSivashinsky(FixedSteps):
    """The Kuramoto-Sivashinsky equation u_t = -u u_x - u_xx - u_xxxx, periodic (appendix C).

    Central differences on five points (equation 7) and the midpoint rule (8, 9). Chaotic: a
    rounding error of single precision grows to the size of the waves within t = 60 or so.

    Parameters
    ----------
    dx, dt : float
        Distance of points and time step. The fourth derivative makes steps beyond about dx^4 / 8
        unstable.
    """

    dx: float = 0.5
    dt: float = 5e-3

    name = "ks"
    fields = ("u",)
    reach = 2
    boundary = "periodic"

    def __post_init__(self) -> None:
        for name in ("dx", "dt"):
            _positive(name, getattr(self, name))
        stiffest = 4 / self.dx**2
        if stiffest <= 1:
            raise ValueError(f"dx = {self.dx}; allowed: less than 2, or waves are not resolved")
        limit = 2 / (stiffest * (stiffest - 1))
        if self.dt > limit:
            raise ValueError(
                f"dt = {self.dt}; allowed: at most {limit:g} at dx = {self.dx}: a longer step is "
                "unstable"
            )

    @property
    def weights(self) -> tuple[float, ...]:
        return (self.dt / 2, self.dt)

    def initial(self, n: int) -> np.ndarray:
        """2 cos(19 pi x / 128), with the nearest wavelength of which a whole number fits."""
        length = n * self.dx
        waves = max(1, round(19 * length / 256))
        return 2 * np.cos(2 * np.pi * waves / length * self.points(n))[None]

    def make_slope(self, real: type, arithmetic: Arithmetic) -> Callable:
        """The stencil of -(u_x u + u_xx + u_xxxx).

        Terms with the same points are taken together:
        (u_{i+1}^2 - u_{i-1}^2) / (4 dx) is a product of the sum and the
        difference of u_{i+1} and u_{i-1}, and u_xx and u_xxxx need that
        sum as well. The unit of all weights is the outermost one,
        -1 / dx^4.
        """
        jit, fma = arithmetic.jit, arithmetic.fma
        second, fourth = 1 / self.dx**2, 1 / self.dx**4
        far = real(-fourth)
        center = real(6 - 2 * second / fourth)
        near = real(second / fourth - 4)
        convection = real(1 / (4 * self.dx * fourth))

        @jit
        def slope(stencil):
            left2, left, mine, right, right2 = stencil
            linear = fma(center, mine, left2 + right2)
            return far * fma(
                left + right,
                fma(convection, right - left, near),
                linear,
            )

        return slope


@dataclass(frozen=True)
class Euler(Problem):
    """Sod's shock tube: the Euler equations between two fixed ends (magee2017, appendix D).

    q = (rho, rho u, rho e), e the total energy of a unit mass, p = (gamma-1)(rho e - rho u^2 / 2).
    A finite-volume scheme on n cells of width 1 / (n - 2): the first and the last lie outside of
    the tube and hold its initial states. At each face the states of both sides are extrapolated,

        qL = q_{i-1} + min(rL, 1) (q_i - q_{i-1}) / 2,   rL = (p_i - p_{i-1}) / (p_{i-1} - p_{i-2}),
        qR = q_i + min(rR, 1) (q_{i-1} - q_i) / 2,       rR = (p_i - p_{i-1}) / (p_{i+1} - p_i),

    uncorrected where a ratio is negative, zero or undefined (equations 15 to 17); twice the flux is

        G = F(qL) + F(qR) + (c + |u|) (qL - qR),

    c and u those of Roe's average of qL and qR (18 to 20). Time steps are the midpoint rule, whose
    weights are dt / (4 dx) and dt / (2 dx) for differences of G.

    Parameters
    ----------
    ratio : float
        dt / dx, at most 0.21.
    gamma : float
        Ratio of specific heats.
    """

    ratio: float = 0.2
    gamma: float = 1.4

    name = "euler"
    fields = ("rho", "rho u", "rho e")
    reach = 2
    boundary = "fixed"
    faces = True
    LEFT: ClassVar = (1.0, 0.0, 1.0)
    """Density, velocity and pressure at first, left of the diaphragm at x = 1/2."""
    RIGHT: ClassVar = (0.125, 0.0, 0.1)
    LONGEST: ClassVar = 0.21

    def __post_init__(self) -> None:
        for name in ("ratio", "gamma"):
            _positive(name, getattr(self, name))
        if self.ratio > self.LONGEST:
            raise ValueError(f"ratio = {self.ratio}; allowed: dt / dx up to {self.LONGEST}")
        if self.gamma <= 1:
            raise ValueError(f"gamma = {self.gamma}; allowed: more than 1")

    @property
    def weights(self) -> tuple[float, ...]:
        return (self.ratio / 4, self.ratio / 2)

    def spacing(self, n: int) -> float:
        return 1 / (n - 2)

    def time_step(self, n: int) -> float:
        return self.ratio / (n - 2)

    def points(self, n: int) -> np.ndarray:
        """Centers of the cells; the first is left of 0, the last right of 1."""
        return (np.arange(n) - 0.5) / (n - 2)

    def initial(self, n: int) -> np.ndarray:
        left = self.points(n) < 0.5
        rho, u, p = (np.where(left, *pair) for pair in zip(self.LEFT, self.RIGHT, strict=True))
        return self.conserved(rho, u, p)

    def conserved(self, rho: np.ndarray, u: np.ndarray, p: np.ndarray) -> np.ndarray:
        """(3, n) states of density, velocity and pressure."""
        return np.stack([rho, rho * u, p / (self.gamma - 1) + 0.5 * rho * u * u])

    def make_slope(self, real: type, arithmetic: Arithmetic) -> Callable:
        """G_{i-1/2} - G_{i+1/2}."""
        inner, twice_flux = self.make_faces(real, arithmetic)

        @arithmetic.jit
        def slope(stencil):
            left2, left, mine, right, right2 = stencil
            e_left, e, e_right = inner(left), inner(mine), inner(right)
            west = twice_flux(left, mine, inner(left2), e_left, e, e_right)
            east = twice_flux(mine, right, e_left, e, e_right, inner(right2))
            return west[0] - east[0], west[1] - east[1], west[2] - east[2]

        return slope

    def make_faces(
        self,
        real: type,
        arithmetic: Arithmetic,
    ) -> tuple[Callable, Callable]:
        """The parts of a slope, so that each face is computed only once.

        Returns
        -------
        inner : function
            ``inner(q)``: the internal energy per volume of a state,
            which is its pressure over gamma - 1 and has the same
            ratios. A pressure would be a product. The compiler may fuse
            it with the difference in which it stands, and then rounds
            only one of two pressures, so that two equal states, such as
            those of a fixed end, would differ by a rounding error.
        twice_flux : function
            ``twice_flux(left, right, e_left2, e_left, e_right,
            e_right2)``: twice the flux at the face between two states,
            from the internal energies of both and of their outer
            neighbors.
        """
        jit, where, fma = arithmetic.jit, arithmetic.where, arithmetic.fma
        rsqrt = arithmetic.make_rsqrt(real)
        divide = arithmetic.make_divide(real)
        zero, half, one = real(0), real(0.5), real(1)
        gas = real(self.gamma - 1)
        sound = real(self.gamma * (self.gamma - 1))

        @jit
        def inner(q):
            # A momentum so small that its quotient is inexact has a
            # square that is nothing beside e.
            rho, m, e = q
            return fma(-half * m, divide(m, rho), e)

        @jit
        def correction(step, reference):
            # Half of min(step / reference, 1) if both have the same sign.
            # A GPU's quotient is NaN where the reference is denormal or
            # the ratio infinite. Then "<" is false, and the ratio is
            # taken for 1, which it exceeds: a step whose product with a
            # denormal number is not 0 is larger than that number.
            usable = step * reference > zero
            ratio = divide(step, where(usable, reference, one))
            least = where(ratio < one, ratio, one)
            return where(usable, half * least, zero)

        @jit
        def between(q, other, share):
            return (
                fma(share, other[0] - q[0], q[0]),
                fma(share, other[1] - q[1], q[1]),
                fma(share, other[2] - q[2], q[2]),
            )

        @jit
        def twice_flux(left, right, e_left2, e_left, e_right, e_right2):
            step = e_right - e_left
            ql = between(left, right, correction(step, e_left - e_left2))
            qr = between(right, left, correction(step, e_right2 - e_right))
            # One root of each density, for both the velocity and Roe's
            # average.
            sl, sr = rsqrt(ql[0]), rsqrt(qr[0])
            mr = qr[1] * sr
            ul, ur = ql[1] * sl * sl, mr * sr
            # Internal energies; times gamma - 1 they are pressures.
            il = fma(-half * ql[1], ul, ql[2])
            ir = fma(-half * qr[1], ur, qr[2])
            # Roe's average weighs velocity and energy by the roots of the
            # densities.
            per = divide(one, fma(ql[0], sl, qr[0] * sr))
            u = fma(ql[1], sl, mr) * per
            e = fma(ql[2], sl, qr[2] * sr) * per
            # At zero, too, this times its rsqrt is NaN: 0 times infinity.
            square = sound * fma(-half * u, u, e)
            radius = fma(square, rsqrt(square), abs(u))
            momentum = fma(gas, il + ir, fma(ql[1], ul, qr[1] * ur))
            hl, hr = fma(gas, il, ql[2]), fma(gas, ir, qr[2])
            return (
                fma(radius, ql[0] - qr[0], ql[1] + qr[1]),
                fma(radius, ql[1] - qr[1], momentum),
                fma(radius, ql[2] - qr[2], fma(hl, ul, hr * ur)),
            )

        return inner, twice_flux


PROBLEMS = {problem.name: problem for problem in (Heat, KuramotoSivashinsky, Euler)}


def as_problem(problem: Problem | str) -> Problem:
    """A problem by name, with its default parameters, or as it is.

    Raises
    ------
    TypeError, ValueError
        If it is neither a Problem nor a name of one, or one for which there are no kernels.
    """
    if isinstance(problem, Problem):
        counts = ("fields", len(problem.fields), FIELDS), ("reach", problem.reach, REACHES)
        for what, count, allowed in counts:
            if count not in allowed:
                some = " or ".join(map(str, allowed))
                raise ValueError(f"problem {problem.name!r}: {what}: {count}; allowed: {some}")
        return problem
    if not isinstance(problem, str):
        raise TypeError(f"problem = {problem!r}; allowed: a Problem or its name")
    if problem not in PROBLEMS:
        allowed = ", ".join(map(repr, PROBLEMS))
        raise ValueError(f"problem = {problem!r}; allowed are {allowed}")
    return PROBLEMS[problem]()
