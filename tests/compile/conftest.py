"""What the tests of this tier share: the compute capabilities that every kernel is compiled for."""

import pytest

from dgbook.check.compile import compile

CAPABILITIES = ((7, 5), (8, 0), (9, 0))


@pytest.fixture(params=CAPABILITIES, ids=lambda cc: f"{cc[0]}.{cc[1]}")
def cc(request):
    """A compute capability: of the T4, the A100, the H100 and H200."""
    return request.param


@pytest.fixture
def held(cc):
    """Compile a kernel and hold it to what every kernel of the book is held to.

    ``held(kernel, signature, dtype, ...)`` asserts that it does not spill and keeps no array in
    local memory, and that an fp32 kernel computes nothing in fp64; returns the report.
    """

    def check(kernel, signature=(), dtype="float32", spill_bytes=0, stack_bytes=0):
        report = compile(kernel, signature, cc)
        assert report.spill_bytes <= spill_bytes, report
        assert report.stack_bytes <= stack_bytes, report
        if str(dtype) == "float32":
            assert report.fp64_instructions == 0, report
        return report

    return check
