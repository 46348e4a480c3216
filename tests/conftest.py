"""Tests marked `gpu` skip where there is no CUDA device; everything runs from one seed."""

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)  # tiny tensors: threads wait for each other longer than they work
settings.register_profile("ours", deadline=None)  # no timed tests
settings.load_profile("ours")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)
