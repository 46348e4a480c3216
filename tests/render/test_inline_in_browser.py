"""The page inside another one, as in a notebook: it works there, and can reach nothing outside."""

import pytest

from glassformer.tracing import Trace
from render.conftest import settled
from render.page_traces import decoder, row_names

pytestmark = pytest.mark.browser
WICKED = [
    "<img src=x onerror=\"parent.document.title='run'\">",
    "</script><script>parent.document.title='run'</script>",
    "\"></iframe><script>document.title='run'</script>",
    "&quot;&gt;&lt;script&gt;document.title='run'&lt;/script&gt;",
    "'",
]


@pytest.fixture
def notebook(chromium):
    """A page that shows what a notebook would show of a trace."""
    context = chromium.new_context(viewport={"width": 1100, "height": 800}, offline=True)
    heard = []

    def shown(trace: Trace):
        tab = context.new_page()
        tab.on("console", lambda message: heard.append(message.text))
        tab.on("pageerror", lambda error: heard.append(str(error)))
        tab.on("dialog", lambda dialog: heard.append(dialog.message))
        title = "<title>notebook</title>"
        tab.set_content(f"<!doctype html>{title}<main>{trace._repr_html_()}</main><p>below</p>")
        return tab

    yield shown
    context.close()
    assert heard == []


def test_the_page_works_in_a_frame(notebook) -> None:
    trace = decoder(6)
    tab = notebook(trace)
    frame = tab.frame_locator("iframe")
    frame.locator('[data-head="1 2"]').click()
    settled(frame)
    frame.locator("[role=application]").focus()
    tab.keyboard.press("Home")
    shown = float(frame.locator("#result").get_attribute("data-value"))
    query, key = map(int, frame.locator("#result").get_attribute("data-cell").split())
    assert key == 0
    expected = float(trace["decoder.1.self"].weights(head=2)[query, key])
    assert shown == pytest.approx(expected, abs=1e-4)
    assert tab.locator("iframe").bounding_box()["height"] == pytest.approx(640, abs=3)
    assert tab.locator("main + p").inner_text() == "below"


def test_tokens_are_never_run_in_a_frame(notebook) -> None:
    tab = notebook(decoder(len(WICKED), words=WICKED))
    frame = tab.frame_locator("iframe")
    frame.get_by_role("button", name="Text view").click()
    frame.locator("#view-panel table").wait_for()
    assert frame.locator("#view-panel tbody bdi").all_inner_texts() == row_names(WICKED)
    assert tab.title() == "notebook"
    assert tab.locator("iframe").count() == 1 and tab.locator("main script").count() == 0


def test_the_text_in_place_of_a_page_is_text(notebook) -> None:
    trace = decoder(2049, layers=1, heads=1, dim=2)
    (site,) = trace
    trace.run.sites = dict.fromkeys(WICKED, site)
    tab = notebook(trace)
    assert tab.locator("main td bdi").all_inner_texts() == WICKED
    assert "up to 2048 tokens" in tab.locator("main p").inner_text()
    assert tab.title() == "notebook" and tab.locator("main script, main img").count() == 0
