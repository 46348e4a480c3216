"""Tests marked `gpu` skip without a CUDA device; everything runs from one seed; one browser."""

import shutil

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)  # tiny tensors: threads wait for each other longer than they work
settings.register_profile("ours", deadline=None)  # no timed tests
settings.load_profile("ours")

QUIET = (  # a browser that asks nobody for anything
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def chromium():
    """A browser without a network, or a sentence about what is missing; one for all tests."""
    driver = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if found is None:
        pytest.skip("needs Chromium, Debian's package chromium")
    with driver.sync_playwright() as play:
        launched = play.chromium.launch(executable_path=found, args=list(QUIET))
        yield launched
        launched.close()
