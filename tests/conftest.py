"""Tests marked `gpu` skip without a CUDA device; all run from one seed; browsers start once."""

import shutil
from collections.abc import Iterator
from typing import Any

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
def play() -> Iterator[Any]:
    """What drives browsers, started once."""
    driver = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    with driver.sync_playwright() as started:
        yield started


def _find_program(*names: str) -> str | None:
    return next(filter(None, map(shutil.which, names)), None)


@pytest.fixture(scope="session")
def chromium(play: Any) -> Iterator[Any]:
    """A browser without a network, or a sentence about what is missing; one for all tests."""
    found = _find_program("chromium", "chromium-browser")
    if found is None:
        pytest.skip("needs Chromium, Debian's package chromium")
    launched = play.chromium.launch(executable_path=found, args=list(QUIET))
    yield launched
    launched.close()


@pytest.fixture(scope="session")
def firefox(play: Any) -> Iterator[Any]:
    """Firefox as it is installed, by WebDriver BiDi; or a sentence about what is missing."""
    found = _find_program("firefox-esr", "firefox")
    if found is None:
        pytest.skip("needs Firefox, Debian's package firefox-esr")
    launched = play.firefox.launch(channel="moz-firefox", executable_path=found)
    try:
        launched.new_page().close()
    except Exception as error:
        if "unknown command" not in str(error):
            raise
        pytest.skip(f"this Playwright asks for what Firefox {launched.version} does not know")
    yield launched
    launched.close()
