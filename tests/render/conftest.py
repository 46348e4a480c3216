"""A page in the browser: nothing that it hears or asks for passes unnoticed."""

import pytest

from glassformer.languages import Language
from glassformer.observe import Trace
from glassformer.render.page import draw_page

ENGLISH = Language("en")


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
