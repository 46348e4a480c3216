"""Two readings under one cursor: both maps are the library's, and so are their differences."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import glassformer as gf
from glassformer.analysis.traced_text import trace_text
from glassformer.tracing import Trace
from glassformer.tracing.interventions import Changes
from workbench.served import TOKEN, Server, serving

expect = pytest.importorskip("playwright.sync_api").expect
axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
pytestmark = pytest.mark.browser

FIRST = "And God said unto Moses, Go"
SECOND = "And God said unto Aaron, Go"
LONGER = "And the Lord God said unto Aaron, Go"
SITE, HEAD, QUERY, KEY = "decoder.2.self", 1, 5, 2
PLACE = f"model=writer&site={SITE}&head={HEAD}&query={QUERY}&key={KEY}"


@pytest.fixture(scope="module")
def traces() -> dict[str, Trace]:
    model = gf.load("writer")
    return {text: trace_text(model, text) for text in (FIRST, SECOND, LONGER)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: Any, traces: dict[str, Trace]) -> Iterator[Server]:
    path = Path(tmp_path_factory.mktemp("pair"), "aaron.trace")
    traces[SECOND].save(path)
    with serving("glassformer.workbench.desk", path, size=1) as found:
        yield found


class Tab:
    """A page on which two readings are compared, and what it says."""

    def __init__(self, context: Any, server: Server) -> None:
        self.page, self.server = context.new_page(), server
        self.faults: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", lambda m: m.type == "error" and self.faults.append(m.text))

    def visit(self, place: str) -> None:
        self.page.goto(f"http://{self.server.host}/#token={TOKEN}&{place}")
        self.settle()

    def settle(self) -> None:
        expect(self.page.locator("#view-panel")).to_have_attribute(
            "aria-busy", "false", timeout=30_000
        )

    def settle_compared(self) -> None:
        """The note speaks of another run as soon as it is there, before its head is drawn."""
        expect(self.page.locator("#pair-note")).to_contain_text("mean of the head")
        self.settle()

    def side(self, name: str) -> Any:
        return self.page.locator(f"[data-side={name}]")

    def shown(self, name: str) -> tuple[int, int, float]:
        """The cell of a side, and its weight."""
        side = self.side(name)
        query, key = (int(text) for text in side.locator(".place").all_inner_texts())
        return query, key, float(side.get_attribute("data-weight"))

    def map(self, name: str) -> Any:
        return self.page.locator(f"[data-map-of={name}] [role=application]")


@pytest.fixture
def tab(chromium: Any, server: Server) -> Iterator[Tab]:
    context = chromium.new_context(viewport={"width": 1280, "height": 720}, locale="en-GB")
    opened = Tab(context, server)
    yield opened
    assert opened.faults == []
    context.close()


def weight(trace: Trace, query: int, key: int, site: str = SITE, head: int = HEAD) -> float:
    return float(trace[site].weights(head=head)[query, key])


def test_another_sentence_beside_the_first(tab: Tab, traces: dict[str, Trace]) -> None:
    page, first, second = tab.page, traces[FIRST], traces[SECOND]
    tab.visit(PLACE)
    page.get_by_role("button", name="Compare").press("Enter")
    expect(page.locator("#with-sentence")).to_be_focused()
    expect(page.locator("#pair-note")).to_contain_text("A and B are the same run and head")
    page.locator("#with-sentence").fill(SECOND)
    page.keyboard.press("Enter")
    tab.settle_compared()
    a, b = weight(first, QUERY, KEY), weight(second, QUERY, KEY)
    assert tab.shown("A") == (QUERY, KEY, pytest.approx(a, abs=1e-4))
    assert tab.shown("B") == (QUERY, KEY, pytest.approx(b, abs=1e-4))
    difference = page.locator("[data-difference]").get_attribute("data-difference")
    assert float(difference) == pytest.approx(b - a, abs=1e-4)
    compared = gf.compare(first, second)
    note = page.locator("#pair-note span")
    row, mean = (float(note.get_attribute(name)) for name in ("data-row", "data-mean"))
    assert row == pytest.approx(float(compared.sites[SITE][HEAD, QUERY]), abs=1e-4)
    assert mean == pytest.approx(float(compared.by_head(SITE)[HEAD]), abs=1e-4)

    tab.map("B").focus()  # the keys of either map move the one cursor
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#query")).to_have_value(str(QUERY - 1))
    assert tab.shown("A")[:2] == tab.shown("B")[:2] == (QUERY - 1, KEY - 1)
    box = tab.map("A").bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.6 * box["height"])
    pointed = tab.shown("A")
    assert pointed[:2] != (QUERY - 1, KEY - 1)
    assert pointed[2] == pytest.approx(weight(first, *pointed[:2]), abs=1e-4)
    assert tab.shown("B") == (*pointed[:2], pytest.approx(weight(second, *pointed[:2]), abs=1e-4))
    page.mouse.move(5, 5)

    page.get_by_role("tab", name="Difference").click()
    expect(page.locator("#view-panel [role=application]")).to_have_count(1)
    expect(page).to_have_url(re.compile("with.view=difference"))
    page.reload()
    tab.settle()
    expect(page.get_by_role("tab", name="Difference")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#with-sentence")).to_have_value(SECOND)
    page.get_by_role("tab", name="Table").click()
    line = page.locator("tbody tr", has_text="2␣said").first
    cells = [text.strip() for text in line.locator("td").all_inner_texts()]
    assert float(cells[2]) == pytest.approx(weight(first, QUERY - 1, 2), abs=1e-3)
    assert float(cells[3]) == pytest.approx(weight(second, QUERY - 1, 2), abs=1e-3)

    page.get_by_role("button", name="Stop comparing").click()
    expect(page.get_by_role("button", name="Compare")).to_be_focused()
    page.go_back()
    expect(page.locator("#with-sentence")).to_have_value(SECOND)
    page.go_back()
    expect(page.locator("#with-sentence")).to_have_value(FIRST)
    page.go_back()
    expect(page.get_by_role("button", name="Compare")).to_be_visible()


def test_texts_of_other_lengths_are_matched_by_their_tokens(
    tab: Tab, traces: dict[str, Trace]
) -> None:
    page, longer = tab.page, traces[LONGER]
    tab.visit(f"{PLACE}&lang=zh&look.with=1&look.with.sentence={quote(LONGER)}")
    labels = [trace.labels("tokens") for trace in (traces[FIRST], longer)]
    query, key = (labels[1].index(labels[0][n]) for n in (QUERY, KEY))
    assert (query, key) != (QUERY, KEY)
    expect(tab.side("B")).to_contain_text("said")
    assert tab.shown("B") == (query, key, pytest.approx(weight(longer, query, key), abs=1e-4))
    tab.map("B").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")  # "the" has no partner
    expect(tab.side("A")).to_have_text(re.compile("没有对应的词元"))
    assert tab.shown("B")[:2] == (query, 1)
    expect(page).to_have_url(re.compile("with.key=1"))
    page.reload()
    tab.settle()
    expect(tab.side("B").locator(".place").nth(1)).to_have_text("1")
    page.get_by_role("tab", name="差值").click()
    n, m = len(labels[0]), len(labels[1])
    expect(page.locator("#view-panel")).to_contain_text(f"A 是 {n} × {n} 格，B 是 {m} × {m} 格")


def test_a_change_another_model_and_a_saved_trace(tab: Tab, traces: dict[str, Trace]) -> None:
    page, model = tab.page, gf.load("writer")
    tab.visit(f"{PLACE}&look.with=1")
    page.locator("#with-change").fill("ablate(decoder.1.self, head=0)")
    page.keyboard.press("Enter")
    tab.settle_compared()
    changed = trace_text(model, FIRST, changes=Changes((gf.Ablate("decoder.1.self", head=0),)))
    assert tab.shown("B")[2] == pytest.approx(weight(changed, QUERY, KEY), abs=1e-4)
    page.locator("#with-change").fill("ablate(decoder.77.self)")
    page.keyboard.press("Enter")
    expect(page.locator("main [role=alert]")).to_contain_text("decoder.77")
    page.locator("#with-model").select_option("aaron.trace")
    expect(page.locator("main [role=alert]")).to_have_count(0)
    tab.settle()
    expect(tab.side("B")).to_contain_text("said")
    expect(page.locator("#with-sentence")).to_have_count(0)
    assert tab.shown("B")[2] == pytest.approx(weight(traces[SECOND], QUERY, KEY), abs=1e-4)
    page.locator("#with-model").select_option("reader")
    expect(page.locator("#with-site")).to_have_value("encoder.2.self")  # as deep as the first
    page.locator("#with-site").select_option("encoder.4.self")
    page.locator("#with-head").select_option("3")
    tab.settle()
    other = trace_text(gf.load("reader"), FIRST)
    expect(tab.side("B")).to_contain_text("said")
    query, key, shown = tab.shown("B")
    expected = weight(other, query, key, "encoder.4.self", 3)
    assert shown == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_accessibility_violations(tab: Tab, theme: str, width: int) -> None:
    tab.page.set_viewport_size({"width": width, "height": 800})
    tab.visit(f"{PLACE}&theme={theme}&look.with=1&look.with.sentence={quote(LONGER)}")
    expect(tab.map("B")).to_be_visible()
    first, second = (tab.map(name).bounding_box() for name in "AB")
    assert first["width"] == second["width"] > 300
    assert (first["y"] == second["y"]) == (width > 720)  # beside, or below each other
    found = axe().run(tab.page).response["violations"]
    assert not [(each["id"], each["nodes"][0]["html"]) for each in found]
    assert tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
