"""A text of thousands of tokens leaves room for its picture; its path is one line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from glassformer.tracing import Run, Trace, TracedText, record
from workbench.served import TOKEN, Server, serving

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser

N = 1501
WORDS = [f"␣word{i}" for i in range(N)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: Any) -> Iterator[Server]:
    path = Path(tmp_path_factory.mktemp("long"), "long.trace")
    torch.manual_seed(0)
    site = record(*torch.randn(3, 1, 1, N, 2).unbind(0), name="encoder.0.self")
    site.queries = site.keys = "tokens"
    words = TracedText(torch.arange(N)[None], [WORDS])
    Trace([Run({site.name: site}, {"tokens": words})]).save(path)
    with serving("glassformer.workbench.desk", path, size=1) as found:
        yield found


@pytest.fixture
def tab(chromium: Any, server: Server) -> Iterator[Any]:
    context = chromium.new_context(viewport={"width": 1280, "height": 720}, locale="en-GB")
    page, faults = context.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: said.type == "error" and faults.append(said.text))
    yield page
    assert not faults
    context.close()


def visit(tab: Any, server: Server, place: str) -> None:
    tab.goto(f"http://{server.host}/#token={TOKEN}&{place}")
    tab.locator("#site").wait_for()


def test_tokens_are_few_until_all_are_wanted(tab: Any, server: Server) -> None:
    visit(tab, server, "model=long.trace&query=700&key=3")
    chips = tab.locator("[data-token]")
    expect(chips).to_have_count(33)
    expect(tab.locator("[data-token][aria-pressed=true]")).to_have_text("␣word700")
    expect(tab.locator("[data-token='700']")).to_be_in_viewport()
    picture = tab.locator("#view-panel [role=application]").bounding_box()
    assert picture["y"] + picture["height"] <= 720 and picture["height"] >= 320
    tab.get_by_role("button", name="All 1,501 tokens").click()
    dialog = tab.locator("dialog[open]")
    chosen = dialog.locator("[aria-pressed=true]")
    expect(chosen).to_contain_text("word700")
    expect(chosen).to_be_focused()
    assert dialog.locator("[data-place]").count() < 400
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Enter")
    expect(tab.locator("#query")).to_have_value("701")
    tab.get_by_role("button", name="All 1,501 tokens").click()
    dialog.get_by_label("Find").fill("word150")
    expect(dialog.get_by_role("status")).to_have_text("2 found")  # word150 and word1500
    dialog.locator("[data-place='1']").click()
    expect(tab.locator("#query")).to_have_value("1500")
    expect(chips.last).to_have_text("␣word1500")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_path_is_one_line_and_its_key_is_never_blank(
    tab: Any, server: Server, lang: str
) -> None:
    visit(tab, server, f"model=writer&room=flow&site=decoder.2.self&lang={lang}")
    line = tab.locator("ol").first.bounding_box()
    assert line["height"] < 40 and line["x"] + line["width"] <= 1280
    strongest = {"en": "strongest key", "zh": "权重最大的键"}[lang]
    expect(tab.locator("#key option:checked")).to_have_text(strongest)
    tab.locator("#key").select_option("0")
    expect(tab.locator("#key")).to_have_value("0")
    tab.locator("#key").select_option("")
    expect(tab.locator("#key option:checked")).to_have_text(strongest)


def test_a_long_sentence_is_one_line_until_it_is_edited(tab: Any, server: Server) -> None:
    visit(tab, server, "model=writer&sentence=" + "+".join(["and+the+king+said"] * 20))
    box = tab.locator("#sentence")
    closed = box.bounding_box()["height"]
    assert closed < 50
    box.focus()
    assert box.bounding_box()["height"] > 2 * closed
    expect(tab.locator("[data-token]")).to_have_count(33)
