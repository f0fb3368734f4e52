"""Numbers that no matter, no gas and no stream has are refused by name, before they overflow."""

import re
import warnings
from functools import partial

import numpy as np
import pytest

from dgbook import acoustics, linear, maxwell
from dgbook.__main__ import main
from dgbook.arguments import LEAST, MOST
from dgbook.euler.exact import Stream, Vortex
from dgbook.hdg.problem import ConvectionDiffusion, Isothermal, NavierStokes
from dgbook.hdg.problem import Stream as SteadyStream
from dgbook.mesh import box
from dgbook.nodal.media import material

MESH = box((1, 1, 1))
ABSURD = [0.0, -1.0, np.nan, np.inf, 1e308, 1e-300, 5e-324]
TAKERS = {
    "epsilon": lambda value: maxwell.Solver(MESH, 1, device="cpu", epsilon=value),
    "mu": lambda value: maxwell.Solver(MESH, 1, device="cpu", mu=value),
    "kappa": lambda value: acoustics.Solver(MESH, 1, device="cpu", kappa=value),
    "rho": lambda value: acoustics.Solver(MESH, 1, device="cpu", rho=value),
    "speed": lambda value: linear.wave(1, value),
    "radius": lambda value: Vortex(radius=value),
    "p": lambda value: Stream(p=value),
    "temperature": lambda value: Isothermal(value),
    "reynolds": lambda value: NavierStokes(value, 0.1),
    "diffusivity": lambda value: ConvectionDiffusion(None, None, (1.0, 1.0), value),
}


@pytest.mark.parametrize("name", TAKERS)
def test_absurd_numbers_are_refused_by_name(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TAKERS[name](1.0)
        for value in ABSURD:
            with pytest.raises(ValueError, match=f"^{name} = ") as caught:
                TAKERS[name](value)
            number, _, allowed = str(caught.value).partition(" = ")[2].partition("; allowed: ")
            assert number == str(value) and allowed == "1e-15 to 1e+15"


@pytest.mark.parametrize("value", [1e-200, 1e200, 1e-7, 1e7])
def test_absurd_mach_numbers_are_refused_by_name(value):
    message = re.escape(f"mach = {value}; allowed: 1e-06 to 1e+06")
    for taker in (Vortex, SteadyStream, partial(NavierStokes, 1.0)):
        with pytest.raises(ValueError, match=message):
            taker(mach=value)


@pytest.mark.parametrize(
    ("values", "where"), [([1, 2, 0], "0.0 in element 2"), ([1, np.nan, 2], "nan in element 1")]
)
def test_the_element_is_named(values, where):
    with pytest.raises(ValueError, match=f"^rho = {where}; allowed: 1e-15 to 1e"):
        material("rho", np.array(values, float), 3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("kappa", "rho"), [(LEAST, MOST), (MOST, LEAST), (MOST, MOST)])
def test_what_is_allowed_does_not_overflow(kappa, rho, dtype):
    """Both extremes side by side, too: operators, steps and energies are finite."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for first, second in ((kappa, rho), (np.where(np.arange(6) < 3, kappa, rho), 1.0)):
            for solver in (
                maxwell.Solver(MESH, 1, dtype, "cpu", epsilon=first, mu=second),
                acoustics.Solver(MESH, 1, dtype, "cpu", kappa=first, rho=second),
            ):
                dt = solver.stable_dt()
                u = np.ones((len(solver.fields), 6, 4))
                assert 0 < dt < np.inf and 0 < solver.energy(u) < np.inf
                assert np.isfinite(solver.run(u, 3 * dt)).all()


@pytest.mark.parametrize(
    "options",
    [
        "hdg --problem couette --mach 1e-200",
        "hdg --problem couette --mach 1e200",
        "hdg --problem couette --reynolds 1e-300",
        "hdg --problem cylinder --temperature 1e308",
        "hdg --problem cylinder --radius 1e308",
        "hdg --problem convection --diffusivity 1e-320",
        "euler --strength 1e308",
        "euler --radius 1e-300",
        "acoustics --kappa 1e-300 --rho 1e300",
    ],
)
def test_the_option_is_named(options, capsys):
    assert main(["run", *options.split(), "--device", "cpu"]) == 2
    option = next(word for word in options.split() if word not in ("--problem",) and "--" in word)
    error = capsys.readouterr().err
    assert error.startswith(f"python -m dgbook: {option} 1e") and "; allowed: " in error
    assert error.count("\n") == 1
