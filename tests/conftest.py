"""Tests marked `gpu` skip without a CUDA device; all run from one seed; browsers start once."""

import atexit
import gc
import os
from collections.abc import Iterator
from importlib.util import find_spec

import jaxtyping
import pytest
import torch
from hypothesis import settings

from browsers import QUIET, Driver, SharedBrowser, find_program
from glassformer.functional.backends import native_timing

if find_spec("beartype"):  # not where vLLM is tested
    from signatures import check_signature

    jaxtyping.jaxtyped = check_signature  # what its import hook decorates with
# Tiny tensors: threads wait for each other longer than they work, here and in every process begun.
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")
gc.disable()  # modules and tests are kept: looking through them for garbage doubles the collection
settings.register_profile("ours", deadline=None)  # no timed tests
settings.load_profile("ours")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    has_cuda = torch.cuda.is_available()
    can_rerun = config.pluginmanager.hasplugin("rerunfailures")
    for item in items:
        if "gpu" in item.keywords and not has_cuda:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
        if "browser" in item.keywords and can_rerun:
            item.add_marker(pytest.mark.flaky(reruns=2))  # a busy machine is no fault


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
    atexit.register(gc.unfreeze)  # some extensions complain of what is left at the end


@pytest.fixture(autouse=True)
def seeded() -> None:
    # Without a GPU torch.manual_seed keeps for each absent device who called it: milliseconds.
    seed = torch.manual_seed if torch.cuda.is_available() else torch.default_generator.manual_seed
    seed(0)


# Which of two kernels is taken must not depend on how busy a machine is that runs tests.
RATIOS = {"none": 1.05, "causal": 0.7, "mask": 0.5, "bias": 0.4}


@pytest.fixture(autouse=True)
def timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_timing, "measure", lambda case: RATIOS[case.form])


@pytest.fixture
def two_threads() -> Iterator[None]:
    """PyTorch and our C code compute with two threads instead of one."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def driver() -> Iterator[Driver]:
    """What drives browsers, started once."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    playwright.expect.set_options(timeout=90_000)  # a busy machine is no fault
    started = Driver(lambda: playwright.sync_playwright().start())
    yield started
    started.play.stop()


@pytest.fixture(scope="session")
def chromium(driver: Driver) -> Iterator[SharedBrowser]:
    """A browser without a network, or a sentence about what is missing; one for all tests."""
    found = find_program("chromium", "chromium-browser")
    if found is None:
        pytest.skip("needs Chromium, Debian's package chromium")
    options = {"executable_path": found, "args": list(QUIET)}
    browser = SharedBrowser(driver, lambda play: play.chromium.launch(**options))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def firefox(driver: Driver) -> Iterator[SharedBrowser]:
    """Firefox as it is installed, by WebDriver BiDi; or a sentence about what is missing."""
    found = find_program("firefox-esr", "firefox")
    if found is None:
        pytest.skip("needs Firefox, Debian's package firefox-esr")
    options = {"channel": "moz-firefox", "executable_path": found}
    browser = SharedBrowser(driver, lambda play: play.firefox.launch(**options))
    try:
        browser.new_page().close()
    except Exception as error:
        if "unknown command" not in str(error):
            raise
        pytest.skip(f"this Playwright asks for what Firefox {browser.version} does not know")
    yield browser
    browser.close()
