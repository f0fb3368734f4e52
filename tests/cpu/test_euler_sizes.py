"""States that the fused kernel's 32-bit positions cannot number are refused."""

import pytest

from dgbook.element import NodalElement
from dgbook.euler import reference
from dgbook.euler.launch import fused
from dgbook.gpu import device
from dgbook.mesh import box
from dgbook.nodal import launching


def test_what_numba_cannot_number_is_refused(monkeypatch):
    """Eight triangles fill a tile of 32; of three nodes with four fields each."""
    operator = reference.assemble(box((2, 2), periodic=True), NodalElement(2, 1))
    size = 32 * 3 * 4
    monkeypatch.setattr(launching, "MOST", size)
    message = f"mesh.K = 8 .* need an array of {size} entries; allowed: less than {size}"
    with pytest.raises(ValueError, match=message):
        fused.FusedLauncher(operator, device("simulator"), fused.FusedPlan("numba", 32, 1))
    fused.FusedLauncher(operator, device("simulator"), fused.FusedPlan("cuda", 32, 1))
    monkeypatch.setattr(launching, "MOST", size + 1)
    fused.FusedLauncher(operator, device("simulator"), fused.FusedPlan("numba", 32, 1))
