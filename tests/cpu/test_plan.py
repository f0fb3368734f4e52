"""Which plan runs: the user's own, a shipped one, or the usual one; and what no file can break."""

import json
from dataclasses import asdict, dataclass, replace

import pytest

from dgbook.acoustics.plan import BernsteinFusedPlan, Shape
from dgbook.euler.plan import FusedPlan as EulerPlan
from dgbook.euler.plan import FusedShape as EulerShape
from dgbook.gpu import device
from dgbook.gpu import plan as module
from dgbook.gpu.limits import architecture, resident_blocks
from dgbook.gpu.plan import LaunchPlan, choose, shipped
from dgbook.gpu.tune import file_name, tune
from dgbook.maxwell.plan import BernsteinFusedPlan as MaxwellTeams
from dgbook.maxwell.plan import EitherPlan, FusedShape
from dgbook.nodal.fused import FusedPlan

GPU = replace(device("simulator"), kind="cuda", name="Test 9000", compute_capability=(8, 6))


@dataclass(frozen=True)
class Case:
    order: int = 3
    dtype: str = "float32"


@dataclass(frozen=True)
class Plan(LaunchPlan):
    """Of a kernel that runs with 32 to 1024 threads, and with a trick that other GPUs lack."""

    count: int
    trick: bool = False

    def __post_init__(self):
        if self.count < 32:
            raise ValueError(f"count = {self.count}")

    @classmethod
    def default(cls, shape, capability=None, variant=""):
        return cls(128)

    def subject(self, shape):
        return "family/kernel"

    def candidates(self, shape, capability=None):
        return [self]

    def block(self, shape):
        return self.count

    def portable(self, shape, capability):
        return not self.trick


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Writes a file of plans: the user's, or one that is shipped for a GPU of that name."""
    monkeypatch.setattr("dgbook.gpu.tune.cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr("dgbook.gpu.tune.measurable", lambda found: found)
    monkeypatch.setattr(module, "SHIPPED", tmp_path)
    module._shipped.cache_clear()

    def write(gpu, *plans, **changes):
        about = {"name": "family/kernel", "order": 3, "dtype": "float32", "failure": ""} | changes
        lines = [json.dumps(about | {"plan": plan}) for plan in plans]
        (tmp_path / file_name(gpu)).write_text("\n".join(lines))
        module._shipped.cache_clear()

    yield write
    module._shipped.cache_clear()


def test_the_users_own_then_this_gpus_then_anothers_then_the_usual(files, monkeypatch):
    assert choose(Plan, Case(), GPU) == Plan(128)
    files("Another", {"count": 64, "trick": True}, {"count": 96, "trick": False})
    assert choose(Plan, Case(), GPU) == Plan(96)
    files("Test 9000", {"count": 64, "trick": True})
    assert choose(Plan, Case(), GPU) == Plan(64, True)
    assert shipped(Plan, Case(), (8, 6)) == choose(Plan, Case(), device("simulator")) == Plan(96)
    timing = type("Timing", (), {"median": 1.0, "iqr": 0.0, "samples": 20})
    monkeypatch.setattr("dgbook.gpu.tune.measure", lambda *_, **__: timing)
    tune("family/kernel", [Plan(32)], lambda plan: plan, GPU, 3, "float32", progress=False)
    assert choose(Plan, Case(), GPU) == Plan(32)
    assert choose(Plan, Case(order=4), GPU) == choose(Plan, Case(dtype="float64"), GPU) == Plan(128)


@pytest.mark.parametrize(
    "plan",
    [
        {"count": 2048, "trick": False},
        {"count": 16, "trick": False},
        {"count": "many", "trick": False},
        {"count": 64},
        {"count": 64, "trick": False, "luck": 1},
        [64, False],
        None,
    ],
    ids=str,
)
def test_what_is_in_a_file_may_be_anything(files, plan):
    files("Test 9000", plan, {"count": 96, "trick": False})
    assert choose(Plan, Case(), GPU) == Plan(96), "the next one is taken"
    files("Test 9000", plan)
    assert choose(Plan, Case(), GPU) == Plan(128)


def test_torn_files_are_forgotten(files, tmp_path):
    (tmp_path / file_name("Test 9000")).write_bytes(b'\xff\x00{"name": "family/ker\n[1]\n7\n{}\n\n')
    assert choose(Plan, Case(), GPU) == Plan(128)


def test_every_shipped_plan_is_read_and_can_run():
    """On the GPU on which it was the fastest; the first of its subject is chosen there."""
    (file,) = module.SHIPPED.glob("*.jsonl")
    assert file.name == file_name("NVIDIA H200")
    kinds = {
        "maxwell/fused": (FusedPlan, lambda order, dtype: FusedShape(order, dtype, True)),
        "maxwell/bernstein": (MaxwellTeams, FusedShape),
        "maxwell/basis": (EitherPlan, lambda order, dtype: FusedShape(order, dtype, True)),
        "acoustics/fused": (FusedPlan, Shape),
        "acoustics/bernstein": (BernsteinFusedPlan, Shape),
        "euler/fused": (EulerPlan, EulerShape),
    }
    first, anywhere = {}, set()
    for line in map(json.loads, file.read_text().splitlines()):
        name, variant = line["name"].rsplit("/", 1)
        kind, shape_of = kinds[name]
        shape = shape_of(line["order"], line["dtype"])
        usual = kind.default(shape, (9, 0), variant)
        assert usual.subject(shape) == line["name"]
        plan = module._read(usual, line["plan"], shape, (9, 0), True)
        assert asdict(plan) == line["plan"] and plan.language == variant
        first.setdefault((name, shape, variant), plan)
        assert plan.portable(shape, (9, 0)), "no GPU loses its own plans by where they may run"
        if not getattr(plan, "tensor", False):
            anywhere.add((name, shape, variant))
    # Orders 1 to 9 in both languages, in CUDA C++ and acoustics 3 more; order 1, and in CUDA C++ 5
    # and 6 more by precision, of the Bernstein basis of acoustics; 0 to 6, and 1 to 6. In CUDA C++
    # orders 1 to 9 of Maxwell's Bernstein basis, and of the choice between its bases.
    bernstein = 2 * (1 + 1) + 5 + 6 + 2 * 9 + 2 * 9
    assert len(first) == 2 * (9 + 9) + 2 * (12 + 9) + bernstein + (7 + 7) + (7 + 6)
    above = {key for key in first if key[1].order > 9}  # only on tensor cores
    assert anywhere == first.keys() - above and len(above) == 2 * 3
    for (name, shape, variant), plan in first.items():
        assert shipped(kinds[name][0], shape, (9, 0), variant) == plan


@pytest.mark.parametrize("shape_of", [FusedShape, Shape])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (8, 6), (8, 9)])
def test_a_plan_of_another_gpu_fills_this_one(shape_of, dtype, capability):
    """All blocks that it promises are resident, or as many warps as of the usual plan."""
    limits = architecture(capability)

    def held(plan, shape):
        return resident_blocks(limits, plan.block(shape), 64, plan.shared_bytes(shape))

    for order in range(1, 10):
        shape = shape_of(order, dtype)
        plan = shipped(FusedPlan, shape, capability)
        usual = FusedPlan.default(shape, capability)
        warps, enough = (held(p, shape) * -(-p.block(shape) // 32) for p in (plan, usual))
        assert held(plan, shape) >= plan.blocks or warps >= enough, (order, plan)


def test_a_small_multiprocessor_gets_the_usual_plan():
    """An H200's plan of four blocks with 33,024 bytes each, on a T4, which has 65,536 in all.

    One block, 4 of 32 warps, would be all. Of the usual plan 8,448 bytes hold a block of 4 warps.
    """
    shape, t4 = FusedShape(7, "float32"), (7, 5)
    usual = FusedPlan.default(shape, t4)
    own = FusedPlan("cuda", 2, 4, 2, 2, blocks=4)
    assert (own.shared_bytes(shape), own.block(shape)) == (33_024, 128)
    assert (usual.shared_bytes(shape), usual.block(shape)) == (8304, 128)
    assert own.portable(shape, (9, 0)) and not own.portable(shape, t4)
    assert shipped(FusedPlan, shape, t4) == usual
    assert replace(own, blocks=1).portable(shape, t4), "all that it promises"
    tiny = FusedShape(1, "float64")  # six of eight blocks are 12 warps, the usual one's are 4
    assert (shipped(FusedPlan, tiny, t4).blocks, FusedPlan.default(tiny, t4).blocks) == (8, 1)
