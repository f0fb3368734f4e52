"""What the tests of this tier share: both precisions, and the seed of their random inputs."""

import pytest


@pytest.fixture(autouse=True)
def seed(request):
    """Shown with a test that fails."""
    if hasattr(request.module, "SEED"):
        print(f"seed {request.module.SEED}")


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param
