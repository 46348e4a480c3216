"""A page in the browser: nothing that it hears or asks for passes unnoticed."""

from pathlib import Path

import pytest

from glassformer.languages import Language
from glassformer.render.page.document import draw_page
from glassformer.tracing import Trace

ENGLISH = Language("en")


def settled(tab) -> None:
    """Wait until the engine has computed what is chosen."""
    tab.locator("#view-panel[aria-busy=false]").wait_for()


@pytest.fixture
def open_file(chromium):
    """Open a page as a person would, from a file; whatever it complains of or asks for fails."""
    contexts, heard = [], []

    def open_in_tab(
        path: Path, *, width: int = 1280, fragment: str = "", script: str = "", **options
    ):
        size = {"width": width, "height": 800}
        contexts.append(chromium.new_context(viewport=size, offline=True, **options))
        tab = contexts[-1].new_page()
        if script:
            tab.add_init_script(script)
        tab.on("console", lambda message: heard.append(message.text))
        tab.on("pageerror", lambda error: heard.append(str(error)))
        tab.on("request", lambda request: heard.append(request.url.split("/")[0]))
        tab.on("dialog", lambda dialog: heard.append(dialog.message))
        tab.goto(f"{path.as_uri()}{fragment}")
        return tab

    yield open_in_tab
    for context in contexts:
        context.close()
    # The file itself, and the engine's thread, which is a part of it.
    assert [each for each in heard if each not in ("file:", "blob:null")] == []


@pytest.fixture
def open_page(open_file, tmp_path):
    """Open the page of a trace, and wait for what it computes."""

    def open_trace(trace: Trace, *, language: Language = ENGLISH, **options):
        path = tmp_path / "page.html"
        draw_page(trace, path, language=language)
        tab = open_file(path, **options)
        settled(tab)
        return tab

    return open_trace
