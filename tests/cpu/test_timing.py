"""The timing helper's protocol and the roofline's arithmetic; the clock is a fake one."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest

from dgbook.gpu import Device, device, timing
from dgbook.gpu.limits import architecture, resident_blocks
from dgbook.gpu.timing import Timing, beyond_cache, measure
from dgbook.lab import probes, roofline
from dgbook.lab.floor import Ceilings, floor_seconds
from dgbook.lab.roofline import ceilings


class Clock:
    """A clock that moves only when the timed function works."""

    def __init__(self, seconds):
        self.now, self.seconds, self.calls = 0.0, seconds, 0

    def work(self):
        """Takes `seconds`, every tenth time three times as long."""
        self.calls += 1
        self.now += self.seconds * (3 if self.calls % 10 == 0 else 1)


@pytest.fixture
def clock(monkeypatch):
    def make(seconds):
        fake = Clock(seconds)
        monkeypatch.setattr(timing.time, "perf_counter", lambda: fake.now)
        return fake

    return make


def test_median_is_not_moved_by_outliers(clock):
    fake = clock(1e-3)
    result = measure(fake.work, "cpu", samples=40)
    assert result.samples == 40
    assert result.inner == 1, "a millisecond is long enough for a sample"
    assert result.median == pytest.approx(1e-3)
    assert result.minimum == pytest.approx(1e-3)
    assert max(result.seconds) == pytest.approx(3e-3)
    assert result.iqr == pytest.approx(0, abs=1e-12)


def test_short_functions_are_repeated_within_a_sample(clock):
    fake = clock(1e-7)
    result = measure(fake.work, "cpu")
    assert result.inner * 1e-7 >= timing.SHORTEST_SAMPLE * 0.99
    assert result.minimum >= 1e-7 * 0.999
    assert result.median == pytest.approx(1.2e-7, rel=0.01), "the mean call within each sample"
    assert fake.calls > result.inner * result.samples


def test_inner_is_obeyed(clock):
    fake = clock(1e-7)
    result = measure(fake.work, "cpu", samples=20, warmup=2, inner=7)
    assert (result.inner, fake.calls) == (7, 2 + 20 * 7)


def test_a_real_clock_moves():
    values = np.arange(2.0**20)
    result = measure(lambda: values.sum(), "cpu", samples=20)
    assert 1e-6 < result.minimum <= result.median < 1
    assert not result.host_bound


def test_statistics():
    result = Timing(tuple(float(s) for s in range(1, 22)), inner=5)
    assert (result.median, result.iqr, result.minimum, result.samples) == (11.0, 10.0, 1.0, 21)
    assert result.as_row() == {"seconds_median": 11.0, "seconds_iqr": 10.0, "samples": 21}
    assert str(result) == "11 s (IQR 10 s, 21 samples of 5)"
    assert str(Timing((2.5e-6,) * 20)) == "2.5 us (IQR 0 us, 20 samples of 1)"
    assert str(Timing((2.5e-3,) * 20)) == "2.5 ms (IQR 0 ms, 20 samples of 1)"


class Stream:
    """A GPU's queue and a host that fills it: who waits for whom, in seconds."""

    def __init__(self, host_cost, device_cost):
        self.host = self.device = 0.0
        self.host_cost, self.device_cost = host_cost, device_cost
        stream = self

        class Event:
            def record(self):
                stream.device = self.time = max(stream.device, stream.host)

            @property
            def done(self):
                return self.time <= stream.host

            def synchronize(self):
                stream.host = max(stream.host, self.time)

        self.Event = Event
        self.cuda = self
        self.Device = lambda: self

    def queue(self, seconds):
        self.host += self.host_cost
        self.device = max(self.device, self.host) + seconds

    def launch(self):
        self.queue(self.device_cost)

    def synchronize(self):
        self.host = max(self.host, self.device)

    def zeros(self, shape, dtype):
        return np.zeros(shape, dtype)

    def get_elapsed_time(self, start, stop):
        return (stop.time - start.time) * 1e3

    def __getitem__(self, configuration):  # the kernel that holds the device
        return lambda microseconds, ended: self.queue(1e-6 * microseconds)


@pytest.fixture
def stream(monkeypatch):
    def make(host_cost, device_cost):
        fake = Stream(host_cost, device_cost)
        monkeypatch.setitem(sys.modules, "cupy", fake)
        monkeypatch.setattr(timing, "_hold", fake)
        return fake

    return make


GPU = Device("cuda", "a GPU", "It exists in this test only.", l2_bytes=2**20)


@pytest.mark.parametrize("device_cost", [2e-6, 60e-6, 1e-3])
def test_a_gpus_time_is_measured_and_not_pythons(stream, device_cost):
    fake = stream(host_cost=58e-6, device_cost=device_cost)
    result = measure(fake.launch, GPU)
    assert result.seconds == pytest.approx([device_cost] * 30)
    assert not result.host_bound
    assert result.inner == max(1, math.ceil(50e-6 / device_cost))


def test_what_waits_for_the_device_is_host_bound(stream):
    fake = stream(host_cost=58e-6, device_cost=20e-6)

    def waits():
        fake.launch()
        fake.synchronize()

    result = measure(waits, GPU)
    assert result.host_bound
    assert result.median == pytest.approx(78e-6), "what the reader would see on a clock"


@pytest.mark.parametrize("late", [10, 11])
def test_a_timing_is_host_bound_if_most_samples_are(late, stream, monkeypatch):
    stream(host_cost=0.0, device_cost=1e-3)
    flags = iter([True] * (3 + 1 + late) + [False] * (20 - late))  # four before the samples
    monkeypatch.setattr(timing, "_device_sampler", lambda _: lambda calls: (1e-3, next(flags)))
    assert measure(lambda: None, GPU, samples=20).host_bound == (late > 20 // 2)


def test_a_stream_is_not_overfilled(stream):
    result = measure(stream(host_cost=1e-6, device_cost=1e-9).launch, GPU)
    assert result.inner == timing.MOST_CALLS["cuda"] < 1000


def test_the_simulator_has_no_time():
    for ask in (
        lambda: measure(lambda: None, "simulator"),
        lambda: beyond_cache(1, "simulator"),
        lambda: ceilings("simulator"),
    ):
        with pytest.raises(RuntimeError, match="simulator"):
            ask()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"samples": 19}, "samples = 19"), ({"warmup": 0}, "warmup = 0"), ({"inner": 0}, "inner = 0")],
)
def test_too_few_are_refused(arguments, message):
    def never():
        raise AssertionError("called before the arguments were checked")

    with pytest.raises(ValueError, match=message):
        measure(never, "cpu", **arguments)


def test_beyond_cache(monkeypatch):
    monkeypatch.setattr(timing.os, "sysconf", lambda name: 10 * 2**20, raising=False)
    assert beyond_cache(40 * 2**20, "cpu")
    assert not beyond_cache(40 * 2**20 - 1, "cpu")
    monkeypatch.setattr(timing.os, "sysconf", lambda name: 0, raising=False)
    assert timing.cache_bytes("cpu") == timing.UNKNOWN_CACHE
    with pytest.raises(ValueError, match="nbytes = -1"):
        beyond_cache(-1, "cpu")


# ---------------------------------------------------------------------------------------- roofline

H = Ceilings(copy_TBps=4.0, fp32_TFLOPs=60.0, fp64_TFLOPs=30.0)


def test_floor_is_the_slower_of_the_two():
    assert floor_seconds(4e12, 0, "float32", H) == pytest.approx(1)
    assert floor_seconds(0, 60e12, "float32", H) == pytest.approx(1)
    assert floor_seconds(0, 60e12, "float64", H) == pytest.approx(2)
    assert floor_seconds(4e9, 30e9, "float64", H) == pytest.approx(1e-3)
    assert floor_seconds(4e9, 90e9, np.float64, H) == pytest.approx(3e-3)


def test_ridge_is_where_both_floors_meet():
    for dtype in ("float32", "float64"):
        nbytes = 1e9
        flops = H.ridge(dtype) * nbytes
        memory = floor_seconds(nbytes, 0, dtype, H)
        assert floor_seconds(0, flops, dtype, H) == pytest.approx(memory)
    assert H.ridge("float32") == pytest.approx(15)


def test_roofline_refuses():
    with pytest.raises(ValueError, match="bytes = -1"):
        floor_seconds(-1, 1, "float32", H)
    with pytest.raises(ValueError, match="not both 0"):
        floor_seconds(0, 0, "float32", H)
    with pytest.raises(ValueError, match="dtype = 'float16'"):
        floor_seconds(1, 1, "float16", H)
    with pytest.raises(ValueError, match="fp64_TFLOPs = 0"):
        Ceilings(1.0, 1.0, 0.0)


def test_the_fastest_unit_of_a_precision_makes_the_floor():
    both = Ceilings(4.0, 60.0, 30.0, fp32_tensor_TFLOPs=90.0, fp64_tensor_TFLOPs=50.0)
    assert floor_seconds(1.0, 180e12, "float32", both) == pytest.approx(2.0)
    assert floor_seconds(1.0, 180e12, "float64", both) == pytest.approx(3.6)
    slower = replace(both, fp32_tensor_TFLOPs=45.0)  # three products in TF32 may not pay
    assert floor_seconds(1.0, 180e12, "float32", slower) == pytest.approx(3.0)
    assert both.ridge("float64") == pytest.approx(12.5)
    assert both.as_dict().keys() - H.as_dict().keys() == {
        "fp32_tensor_TFLOPs",
        "fp64_tensor_TFLOPs",
    }


@pytest.mark.parametrize(
    ("memory", "l2", "quick", "expected"),
    [
        (80 * 2**30, 2**20, False, 2**30),
        (80 * 2**30, 2**20, True, 2**28),
        (80 * 2**30, 2**27, True, 2**29),  # four times the L2
        (4 * 2**30, 2**20, False, 2**29),  # two of them take a quarter of the memory
    ],
)
def test_what_is_copied_fits_the_memory_and_not_the_cache(memory, l2, quick, expected):
    gpu = replace(GPU, memory_bytes=memory, l2_bytes=l2)
    assert roofline._copy_bytes(gpu, quick) == expected


def test_ceilings_of_a_cpu(monkeypatch):
    # One second a call, so the ceilings are the counts themselves.
    monkeypatch.setattr(roofline, "measure", lambda *a, **k: Timing((1.0,) * 20))
    found = ceilings("cpu", quick=True)
    assert set(found.as_dict()) == {"copy_TBps", "fp32_TFLOPs", "fp64_TFLOPs"}
    assert found.copy_TBps == pytest.approx(2 * 2**26 * 1e-12), "read and written"
    assert found.fp32_TFLOPs == found.fp64_TFLOPs == pytest.approx(2 * 512**3 * 1e-12)
    assert "NumPy" in found.method


# ------------------------------------------------------------------------------ what probes predict


def test_bank_conflicts_are_greatest_common_divisors():
    assert [probes.conflict_degree(s) for s in range(33)] == [1, *np.gcd(range(1, 33), 32)]
    with pytest.raises(ValueError, match="stride = 33"):
        probes.conflict_degree(33)


def test_sectors_of_a_warp():
    assert [probes.sectors_per_warp(4, s) for s in (1, 2, 4, 8, 16, 32)] == [4, 8, 16, 32, 32, 32]
    assert [probes.sectors_per_warp(8, s) for s in (1, 2, 4, 8)] == [8, 16, 32, 32]


def test_chain_visits_every_line_once():
    following = probes.chase_chain(100)
    assert following.dtype == np.uint32
    seen, at = [], 0
    for _ in range(100):
        seen.append(at)
        at = int(following[at])
    assert at == 0, "it closes"
    assert sorted(seen) == list(range(0, 3200, 32)), "each 128-byte line once"
    assert len(set(np.diff(seen))) > 50, "in no order that could be guessed"
    with pytest.raises(ValueError, match="lines = 0"):
        probes.chase_chain(0)


@pytest.mark.parametrize(
    ("size", "times"), [(2**14, 64), (2**19, 64), (2**20, 1 / 2), (2**24, 1 / 30), (2**30, 1 / 30)]
)
def test_the_samples_of_a_latency_visit_the_whole_chain(size, times):
    reads = probes.LINKS * probes.chase_rounds(size)
    lines = size // 128
    assert reads == pytest.approx(max(times * lines, 4096), abs=probes.LINKS)
    assert probes.SAMPLES * reads >= lines


@pytest.mark.parametrize(
    ("driver", "arguments"),
    [
        (probes.copy_bandwidth, ()),
        (probes.gather_bandwidth, ()),
        (probes.transpose_bandwidth, ()),
        (probes.bank_conflicts, (2,)),
        (probes.latency, (2**14,)),
        (probes.shared_latency, (1,)),
        (probes.copy_several_bandwidth, ("float32", 4)),
        (probes.fma_rate, ()),
        (probes.chain_latency, ("float64", "divide")),
        (probes.clock_cycle, ()),
        (probes.divergence, (2,)),
        (probes.occupancy, (1024,)),
        (probes.atomics, ("shuffled",)),
        (probes.launch_cost, ("raw",)),
        (probes.read_bandwidth, (2**24,)),
        (probes.tensor_rate, ("float64",)),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
@pytest.mark.parametrize("name", ["cpu", "simulator"])
def test_probes_measure_gpus_only(driver, arguments, name):
    with pytest.raises(RuntimeError, match=f"{driver.__name__} measures a CUDA device"):
        driver(device(name), *arguments)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda d: probes.copy_bandwidth(d, stride=0), "stride = 0"),
        (lambda d: probes.copy_bandwidth(d, stride=2, offset=1), "stride = 2, offset = 1"),
        (lambda d: probes.transpose_bandwidth(d, "tiled"), "kind = 'tiled'"),
        (lambda d: probes.bank_conflicts(d, 40), "stride = 40"),
        (lambda d: probes.shared_latency(d, 40), "stride = 40"),
        (lambda d: probes.copy_several_bandwidth(d, "float32", 9), "loads = 9"),
        (lambda d: probes.latency(d, 100), "working_set_bytes = 100"),
        (lambda d: probes.divergence(d, 0), "branches = 0"),
        (lambda d: probes.occupancy(d, 50_000), "shared_bytes = 50000"),
        (lambda d: probes.atomics(d, "many"), "kind = 'many'"),
        (lambda d: probes.make_fma("float32", 9), "accumulators = 9"),
        (lambda d: probes.make_chain("float32", "add", 3), "chains = 3"),
        (lambda d: probes.make_link("float32", "sqrt"), "operation = 'sqrt'"),
        (lambda d: probes.launch_cost(d, "fast"), "kind = 'fast'"),
        (lambda d: probes.read_bandwidth(d, 2**20 + 8), "working_set_bytes = 1048584"),
        (lambda d: probes.tensor_products("float64", 9), "tiles = 9"),
    ],
)
def test_probes_name_what_is_wrong(ask, message):
    with pytest.raises(ValueError, match=message):
        ask(device("cpu"))


def test_a_probe_divides_by_its_median():
    probe = probes.Probe(Timing((1.0, 2.0, 9.0)), bytes=8 * 10**12, flops=4 * 10**12, operations=4)
    assert (probe.seconds, probe.TBps, probe.TFLOPs) == (2, 4, 2)
    assert probe.seconds_per_operation == 0.5


def test_resident_blocks():
    h200 = architecture((9, 0))
    assert resident_blocks(h200, 64, 32) == 32, "32 blocks, all limits at once"
    assert resident_blocks(h200, 32, 32) == 32, "too small a block: 32 of them at most"
    assert resident_blocks(h200, 1024, 32) == 2
    assert resident_blocks(h200, 768, 32) == 2, "a third block does not fit"
    assert resident_blocks(h200, 64, 32, 48 * 1024) == 4, "49 KiB of 228, four times"
    assert resident_blocks(h200, 1024, 65) == 0, "65 registers become 72: too many"
