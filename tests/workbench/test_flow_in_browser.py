"""Flow and why in a browser: the river, its lens, contributions, and reasons with their verdict."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

import glassformer as gf
from glassformer.tracing import Trace
from glassformer.workbench.memory import Memory
from glassformer.workbench.wire.requests import ReadingRequest
from workbench.browsing import listen
from workbench.served import TOKEN, Server

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser

TEXT = "Mrs. Weston smiled, and"
ASKED = f"model=writer&room=flow&sentence={quote(TEXT)}&site=decoder.1.self&query=5"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return Memory().reading(ReadingRequest(model="writer", text=TEXT), lambda _: None).trace


@pytest.fixture
def open_room(server: Server, chromium: Any) -> Iterator[Any]:
    opened: list[tuple[Any, list[str]]] = []

    def open_at(asked: str) -> Any:
        page = chromium.new_page(viewport={"width": 1280, "height": 720})
        page.set_default_timeout(90_000)
        opened.append((page, listen(page, server)))
        page.goto(f"http://{server.host}/#token={TOKEN}&{asked}")
        page.locator(".bank button").first.wait_for()
        return page

    yield open_at
    for page, faults in opened:
        page.close()
        assert faults == []


def test_the_bank_says_what_the_lens_says(open_room: Any, trace: Trace) -> None:
    page = open_room(f"{ASKED}&lang=en")
    lens = gf.logit_lens(trace, positions=[5])
    banks = page.locator(".bank button")
    expect(banks).to_have_count(len(lens.borders))
    for i in range(len(lens.borders)):
        expect(banks.nth(i)).to_contain_text(lens.labels[i][0][0])
    banks.nth(3).click()
    readout = page.locator(".readout")
    for token in lens.labels[3][0]:
        expect(readout).to_contain_text(token)
    expect(readout).to_contain_text(str(int(lens.rank[3, 0]) + 1))
    page.wait_for_url("**flow.border=3**")
    page.get_by_text("The river as a table").click()
    expect(page.locator("details table tbody tr")).to_have_count(len(lens.borders))


def test_contributions_add_up_to_the_logit(open_room: Any, trace: Trace) -> None:
    page = open_room(f"{ASKED}&lang=zh")
    token = int(trace.logits()[0, 5].argmax())
    found = gf.attribute(trace, token, position=5)
    expect(page.locator("#reasons-panel")).to_contain_text(f"{found.logit:.4g}")
    expect(page.locator("#reasons-panel tbody th").first).to_have_text(found.top(1)[0].name)
    page.get_by_role("tab", name="按头").click()
    best = gf.attribute(trace, token, position=5, by="head").top(1)[0]
    expect(page.locator("#reasons-panel tbody th").first).to_have_text(best.name)


def test_reasons_open_and_end_in_a_verdict(open_room: Any, trace: Trace) -> None:
    page = open_room(f"{ASKED}&lang=en&flow.view=why")
    found = gf.why(trace, position=5, depth=3, judged=False)
    page.get_by_role("treeitem", name=found.reasons[0].name).first.wait_for()
    expect(page.locator(".verdict strong")).to_have_text("Verdict:")


def test_another_reference_text_is_in_the_address(open_room: Any, trace: Trace) -> None:
    page = open_room(f"{ASKED}&lang=en&flow.view=why")
    verdict = page.locator(".verdict > p")
    expect(page.locator(".verdict strong")).to_have_text("Verdict:")
    page.get_by_text("The numbers of the verdict").click()
    none = page.get_by_role("row", name="Without all parts").locator("td").first
    before = none.inner_text()
    page.fill("#reference", "The ship sailed at noon, and nobody on the quay looked up.")
    page.press("#reference", "Enter")
    expect(none).not_to_have_text(before)
    after = none.inner_text()
    page.reload()
    expect(verdict.locator("strong")).to_have_text("Verdict:")
    page.get_by_text("The numbers of the verdict").click()
    expect(none).to_have_text(after)
    expect(page.locator("#reference")).to_have_value(re.compile("^The ship sailed"))


def test_a_stack_without_a_readout_says_so(open_room: Any) -> None:
    page = open_room("model=translator&to=fr&room=flow&site=encoder.1.self&query=2&lang=en")
    expect(page.get_by_text("The encoder writes no tokens itself")).to_be_visible()
    assert page.locator("#reasons-panel").count() == 0
