"""Plans of the paper's kernels, what they and the solver refuse, and the plan by default."""

import numpy as np
import pytest

from dgbook import euler
from dgbook.element import NodalElement
from dgbook.euler import reference
from dgbook.euler.launch import paper
from dgbook.euler.plan import FusedShape, PaperPlan
from dgbook.gpu import Device, device, tune
from dgbook.gpu.plan import choose
from dgbook.mesh import box
from dgbook.nodal import launching


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"threads": 48}, "threads = 48; allowed are 32, 64, 128, 256, 512"),
        ({"max_registers": 8}, "max_registers = 8; allowed: 16 to 255"),
        ({"max_registers": 256}, "max_registers = 256"),
        ({"tables": "texture"}, "tables = 'texture'; allowed are 'constant', 'global'"),
        ({"layout": "node"}, "layout = 'node'; allowed are 'element', 'field'"),
        ({"race": "gather"}, "race = 'gather'; allowed are 'split', 'atomic'"),
        ({"concurrent": "yes"}, "concurrent = 'yes'; allowed are False, True"),
        ({"race": "atomic"}, "concurrent = True with race 'atomic'"),
    ],
)
def test_wrong_plans_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        PaperPlan(**fields)


def test_registers_are_those_that_a_block_can_have():
    assert PaperPlan().registers is None and PaperPlan(threads=256).registers is None
    assert PaperPlan(threads=512).registers == 128
    assert PaperPlan(threads=512, max_registers=64).registers == 64
    assert PaperPlan(threads=32, max_registers=200).registers == 200


def test_the_plan_is_the_papers_unless_the_tuner_remembers_another(monkeypatch):
    gpu, shape = Device("cuda", "none", ""), FusedShape(2, "float32")
    found = {}
    monkeypatch.setattr(tune, "ranked", lambda *_: list(found.values()))
    assert choose(PaperPlan, shape, gpu) == PaperPlan()
    found["plan"] = vars(PaperPlan(threads=128, layout="field"))
    assert choose(PaperPlan, shape, gpu) == PaperPlan(threads=128, layout="field")
    assert choose(PaperPlan, shape, device("simulator")) == PaperPlan()
    found["plan"] = {"threads": 64}  # of a version with other fields
    assert choose(PaperPlan, shape, gpu) == PaperPlan()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"path": "split"}, ValueError, "path = 'split'; allowed are "),
        ({"path": "paper", "plan": 32}, TypeError, "plan = 32; allowed with path 'paper'"),
    ],
)
def test_what_the_solver_refuses(options, error, message):
    with pytest.raises(error, match=message):
        euler.Solver(box((2, 2), periodic=True), 1, device="cpu", **options)


def test_a_mesh_beyond_32_bits_is_refused_before_anything_is_allocated(monkeypatch):
    operator = reference.assemble(box((2, 2), periodic=True), NodalElement(2, 1))
    monkeypatch.setattr(launching, "MOST", 96)  # 8 elements of 12, 12 edges of 8
    with pytest.raises(ValueError, match=r"K = 8 .* need an array of 96 entries"):
        paper.PaperLauncher(operator, device("simulator"))
    monkeypatch.setattr(launching, "MOST", 97)
    assert paper.PaperLauncher(operator, device("simulator")).size == 96


def test_kernels_are_made_once_for_what_they_know_of_a_plan():
    operator = reference.assemble(box((2, 2), periodic=True), NodalElement(2, 1), dtype="float32")
    one, two = (paper.PaperLauncher(operator, device("simulator")) for _ in range(2))
    assert one.kernels is two.kernels
    launched = PaperPlan(threads=256, concurrent=False)
    assert one.planned(launched).kernels is one.kernels, "only the launches differ"
    for other in (PaperPlan(threads=512), PaperPlan(tables="global"), PaperPlan(layout="field")):
        assert one.planned(other).kernels is not one.kernels
    assert one.zeros().dtype == np.float32
