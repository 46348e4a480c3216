"""Long texts and many heads: no strong cell is lost, no head cut off, little in the document."""

import pytest
import torch

import glassformer as gf
from glassformer.tracing import Run, Site, Trace, TracedText
from render.conftest import settled
from render.page_traces import decoder

pytestmark = pytest.mark.browser
# The last pixel of the strongest colour, as a place on the canvas.
STRONGEST = """() => {
  const canvas = document.querySelector('canvas');
  const all = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  for (let i = all.length - 4; i >= 0; i -= 4) {
    if (all[i] === 3 && all[i + 1] === 48 && all[i + 2] === 49) {
      return [(i / 4) % canvas.width, Math.floor(i / 4 / canvas.width)];
    }
  }
}"""


def one_strong_cell(n: int = 1024, query: int = 700, key: int = 300) -> Trace:
    """Even attention everywhere, but for one cell that gets nearly all of its query."""
    q = torch.zeros(1, 1, n, 4)
    k = torch.zeros(1, 1, n, 4)
    q[0, 0, query, 0] = k[0, 0, key, 0] = 6.0
    site = Site(name="decoder.0.self", q=q, k=k, v=k, mask=gf.Causal())
    words = TracedText(torch.arange(n)[None] + 3, [[f"t{i}" for i in range(n)]])
    return Trace([Run({site.name: site}, {"tokens": words})])


def grouped(heads: int = 32, shared: int = 4) -> Trace:
    trace = decoder(6, heads=heads)
    for site in trace:
        site.k, site.v = (each[:, : heads // shared].clone() for each in (site.k, site.v))
    return trace


def test_one_strong_cell_is_seen_among_a_million(open_page) -> None:
    tab = open_page(one_strong_cell(), fragment="#query=0&key=0")
    assert "Each block of 3 × 3 cells" in tab.locator("#legend-meaning").inner_text()
    x, y = tab.evaluate(STRONGEST)
    box = tab.locator("canvas").bounding_box()
    tab.mouse.click(box["x"] + x, box["y"] + y)
    query, key = map(int, tab.locator(".cell .place").all_inner_texts())
    assert abs(query - 700) <= 3 and abs(key - 300) <= 3
    assert tab.locator("#pool").input_value() == "max"


def test_the_scale_is_chosen_and_the_legend_says_which(open_page) -> None:
    tab = open_page(decoder(512, layers=1))
    meaning, ticks = tab.locator("#legend-meaning"), tab.locator(".scale .figures")
    assert meaning.inner_text().startswith("The largest 0.5 % of the weights share")
    values = [float(each.strip("≥ ")) for each in ticks.all_inner_texts()]
    assert values == sorted(set(values)) and values[0] == 0  # no two ticks read alike
    assert ticks.last.inner_text().startswith("≥ ")
    meaning.click()
    tab.select_option("#scale", "row")
    settled(tab)
    assert meaning.inner_text().startswith("Each row has its own scale")
    assert ticks.last.inner_text() == "100 %"
    tab.select_option("#scale", "largest")
    settled(tab)
    assert meaning.inner_text().startswith("The strongest colour is the largest weight")
    tab.locator("#first").check()
    settled(tab)
    assert "first key is left out" in meaning.inner_text()
    tab.select_option("#language", "zh")
    assert "不含第一个键" in meaning.inner_text()


@pytest.mark.parametrize("n", [128, 512])
def test_every_query_has_as_many_lines_as_are_asked_for(open_page, n: int) -> None:
    tab = open_page(decoder(n, layers=1), fragment=f"#view=lines&query={n // 2}&key=0")
    drawn = "(canvas) => Number(canvas.dataset.lines)"
    canvas = tab.locator("#view-panel canvas")
    height = tab.locator("[role=application]").evaluate("(box) => box.clientHeight")
    rows = height // 25
    assert 3 * rows <= canvas.evaluate(drawn) <= 3 * (rows + 2)
    tab.select_option("#lines", "1")
    assert rows <= canvas.evaluate(drawn) <= rows + 2


@pytest.mark.parametrize("width", [1280, 360])
def test_every_head_is_in_sight_and_groups_are_bracketed(open_page, width: int) -> None:
    tab = open_page(grouped(), width=width)
    heads = tab.locator("[data-head]")
    assert heads.count() == 2 * 32
    room = tab.locator(".overview").bounding_box()
    for box in heads.evaluate_all(
        "(all) => all.map((each) => each.getBoundingClientRect().toJSON())"
    ):
        assert room["x"] <= box["left"] and box["right"] <= room["x"] + room["width"]
    assert tab.locator(".overview .opens").count() == tab.locator(".overview .closes").count() == 8
    assert (
        tab.locator('[data-head="1 9"]')
        .get_attribute("aria-label")
        .endswith("; uses key-value head 2")
    )
    assert "share keys and values" in tab.locator(".overview").inner_text()


def test_without_groups_nothing_is_bracketed(open_page) -> None:
    tab = open_page(decoder(6, heads=16))
    assert tab.locator(".overview .bracket").count() == 0
    assert "share keys and values" not in tab.locator(".overview").inner_text()


def test_tables_hold_only_what_is_in_sight(open_page) -> None:
    n = 2048
    trace = decoder(n, layers=1, heads=2, dim=4)
    tab = open_page(trace, fragment="#text=1&head=0&query=1000&key=0")
    tab.locator('#view-panel tr[aria-rowindex="1002"]').wait_for()  # the chosen one
    rows = tab.locator("#view-panel tbody tr[aria-rowindex]")
    assert rows.count() < 100
    assert tab.locator("#view-panel table").get_attribute("aria-rowcount") == str(n + 1)
    region = tab.locator("#view-panel [role=region]")
    region.evaluate("(box) => { box.scrollTop = box.scrollHeight }")
    last = tab.locator(f'#view-panel tr[aria-rowindex="{n + 1}"]')
    last.wait_for()
    strongest = trace["decoder.0.self"].weights(head=0)[n - 1].topk(5).indices.tolist()
    assert [int(p) for p in last.locator("td .place").all_inner_texts()] == strongest
    assert rows.count() < 100
    tab.keyboard.press("3")
    assert tab.locator("#view-panel table").count() == 2
    assert tab.locator("#view-panel tbody tr[aria-rowindex]").count() < 200
    tab.keyboard.press("t")
    tab.keyboard.press("2")
    assert tab.locator("#view-panel li").count() < 200


def test_heads_are_picked_as_text_too(open_page) -> None:
    trace = decoder(6)
    tab = open_page(trace, fragment="#text=1&site=decoder.0.self&head=0")
    tab.select_option("#head", "2")
    settled(tab)
    cells = tab.locator("#view-panel tbody tr").last.locator("td").all_inner_texts()
    expected = trace["decoder.0.self"].weights(head=2)[5].tolist()
    assert [float(cell) for cell in cells] == pytest.approx(expected, abs=6e-4)
    tab.get_by_role("button", name="layer 1, head 1").click()
    settled(tab)
    assert tab.locator("#view-title").inner_text().split() == ["decoder.1.self", "head", "1"]
    assert tab.locator(".overview td.chosen").count() == 1
