"""A browser for the tests of the page: without a network, and nothing it hears passes unnoticed."""

import shutil

import pytest

from glassformer.languages import Language
from glassformer.observe import Trace
from glassformer.render.page import draw_page

ENGLISH = Language("en")
QUIET = (  # a browser that asks nobody for anything
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="package")
def chromium():
    """A browser without a network, or a sentence about what is missing."""
    driver = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if found is None:
        pytest.skip("needs Chromium, Debian's package chromium")
    with driver.sync_playwright() as play:
        launched = play.chromium.launch(executable_path=found, args=list(QUIET))
        yield launched
        launched.close()


@pytest.fixture
def opened(chromium, tmp_path):
    """Open a page as a person would, from a file; whatever it complains of or asks for fails."""
    contexts, heard = [], []

    def open_page(trace: Trace, *, language: Language = ENGLISH, **options):
        path = tmp_path / "page.html"
        draw_page(trace, path, language=language)
        size = {"width": 1280, "height": 800}
        contexts.append(chromium.new_context(viewport=size, offline=True, **options))
        tab = contexts[-1].new_page()
        tab.on("console", lambda message: heard.append(message.text))
        tab.on("pageerror", lambda error: heard.append(str(error)))
        tab.on("request", lambda request: heard.append(request.url))
        tab.on("dialog", lambda dialog: heard.append(dialog.message))
        tab.goto(path.as_uri())
        tab.locator("[data-head]").first.wait_for()
        heard.remove(path.as_uri())
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert heard == []
