"""The page opened by a browser without a network: what it shows is what the trace says."""

import re

import numpy
import pytest

import glassformer as gf
from glassformer.languages import Language
from render.conftest import settled
from render.page_traces import decoder, row_names, translator

pytestmark = pytest.mark.browser

# The colours of a canvas at some points and right around each; read once, as it is drawn.
AROUND = """(points) => {
  const canvas = document.querySelector('canvas');
  const all = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  const colour = (x, y) => Array.from(all.subarray(4 * (y * canvas.width + x)).slice(0, 3));
  const near = [-1, 0, 1];
  return points.map(([x, y]) => near.flatMap((i) => near.map((j) => colour(x + i, y + j))));
}"""

# The scale of web/src/view/colour.ts on light paper, from weight 0 to the largest.
INK = [
    (255, 255, 255),
    (226, 241, 238),
    (190, 223, 218),
    (146, 201, 195),
    (99, 176, 169),
    (53, 148, 142),
    (15, 115, 110),
    (8, 82, 80),
    (3, 48, 49),
]


def weight_shown(tab) -> float:
    """The exact number behind the large one."""
    return float(tab.locator("#result").get_attribute("data-value"))


def test_every_cell_is_as_exact_as_the_trace(open_page) -> None:
    trace = decoder(6, dim=16)
    tab = open_page(trace)
    tab.locator('[data-head="1 2"]').click()
    settled(tab)
    tab.locator("[role=application]").focus()
    weights = trace["decoder.1.self"].weights(head=2)
    for _ in range(5):
        tab.keyboard.press("ArrowUp")
    worst = 0.0
    for query in range(6):
        tab.keyboard.press("Home")
        for key in range(6):
            worst = max(worst, abs(weight_shown(tab) - float(weights[query, key])))
            if key < 5:
                tab.keyboard.press("ArrowRight")
        tab.keyboard.press("ArrowDown")
    assert worst < 1e-4  # promised 1e-3; about 1e-5 was measured


def test_a_click_chooses_the_cell_under_it_and_colours_are_weights(open_page) -> None:
    trace = decoder(80)
    tab = open_page(trace, fragment="#scale=largest")
    tab.locator('[data-head="0 1"]').click()
    settled(tab)
    assert tab.locator("#view-title").inner_text().split() == ["decoder.0.self", "head", "1"]
    weights = trace["decoder.0.self"].weights(head=1)
    box = tab.locator("canvas").bounding_box()
    compared = 0
    steps = range(1, int(box["height"] - 62) // 15)
    points = [(75 + 12 * step, 60 + 15 * step) for step in steps]
    for (x, y), around in zip(points, tab.evaluate(AROUND, points), strict=True):
        tab.mouse.click(box["x"] + x, box["y"] + y)
        query, key = map(int, tab.locator(".cell .place").all_inner_texts())
        assert weight_shown(tab) == pytest.approx(float(weights[query, key]), abs=1e-4)
        if key <= query:
            pointed = float(tab.locator("[data-weight]").get_attribute("data-weight"))
            assert pointed == pytest.approx(weight_shown(tab), abs=1e-12)
        else:
            assert "hidden by the mask" in tab.locator(".readout").inner_text()
        if key <= query and len(set(map(tuple, around))) == 1:  # well inside of a cell
            # The first query sees one key, which says nothing: it does not set the scale.
            share = min(1.0, float(weights[query, key] / weights[1:].max())) ** 0.5
            expected = [numpy.interp(8 * share, range(9), part) for part in zip(*INK, strict=True)]
            assert around[0] == pytest.approx(expected, abs=8)
            compared += 1
    assert compared >= 10


def test_the_keyboard_reaches_everything(open_page) -> None:
    tab = open_page(decoder(6), fragment="#query=5&key=0&head=0&site=decoder.0.self")
    tab.keyboard.press("?")
    assert tab.locator("dialog").is_visible()
    tab.keyboard.press("Escape")
    assert not tab.locator("dialog").is_visible()
    tab.locator('[data-head][tabindex="0"]').first.focus()
    for key in ("ArrowDown", "End", "ArrowLeft"):
        tab.keyboard.press(key)
        settled(tab)
    focused = tab.evaluate("document.activeElement.dataset.head")
    assert focused == "1 1"
    assert tab.locator('[data-head][tabindex="0"]').count() == 1  # one stop on the way
    tab.locator("[role=application]").focus()
    tab.keyboard.press("Home")
    tab.keyboard.press("ArrowUp")
    assert tab.locator(".cell .place").all_inner_texts() == ["4", "0"]
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.getAttribute('aria-labelledby')") == (
        "arithmetic-title"
    )
    tab.keyboard.press("2")
    assert tab.locator("ul.query li").count() == 6
    tab.keyboard.press("]")
    settled(tab)
    assert "head 2" in tab.locator("#view-title").inner_text()
    tab.keyboard.press(",")
    settled(tab)
    assert "decoder.0.self" in tab.locator("#view-title").inner_text()


def test_a_long_text_is_zoomed(open_page) -> None:
    tab = open_page(decoder(200), fragment="#query=199&key=199")
    box = tab.locator("[role=application]")
    hidden = "(box) => box.scrollWidth - box.clientWidth"
    assert box.evaluate(hidden) == 0
    box.focus()
    for _ in range(3):
        tab.keyboard.press("+")
    assert box.evaluate(hidden) > 500
    assert box.evaluate("(box) => box.scrollTop") > 500  # where the chosen cell is: at the end
    tab.keyboard.press("0")
    assert box.evaluate(hidden) == 0


def test_pointing_at_a_token_isolates_its_lines(open_page) -> None:
    trace = decoder(6)
    tab = open_page(trace)
    tab.locator('[data-head="0 2"]').click()
    settled(tab)
    tab.keyboard.press("2")
    shares = "(all) => all.map((li) => Number(li.style.getPropertyValue('--share')))"
    tab.locator("ul.query li").nth(3).hover()
    found = tab.locator("ul.key li").evaluate_all(shares)
    weights = trace["decoder.0.self"].weights(head=2)
    assert found == pytest.approx(weights[3].tolist(), abs=1e-4)
    tab.locator("ul.key li").nth(1).hover()
    found = tab.locator("ul.query li").evaluate_all(shares)
    assert found == pytest.approx(weights[:, 1].tolist(), abs=1e-4)


def test_statistics_are_read_bar_by_bar(open_page) -> None:
    trace = decoder(6)
    tab = open_page(trace)
    tab.locator('[data-head="0 2"]').click()
    settled(tab)
    tab.keyboard.press("3")
    charts = tab.locator("svg[role=slider]")
    site = trace["decoder.0.self"]
    for chart, values in enumerate((site.entropy(2), site.peak(2), site.distance(2))):
        charts.nth(chart).focus()
        tab.keyboard.press("Home")
        for value in values.tolist():
            shown = charts.nth(chart).get_attribute("aria-valuetext").split(": ")[-1]
            assert float(shown) == pytest.approx(value, abs=6e-4)
            tab.keyboard.press("ArrowRight")


def test_every_view_has_a_form_in_text(open_page) -> None:
    trace = decoder(6)
    tab = open_page(trace)
    tab.locator('[data-head="1 0"]').click()
    settled(tab)
    tab.keyboard.press("t")
    site = trace["decoder.1.self"]
    rows = tab.locator("#view-panel tbody tr")
    assert rows.count() == 6
    last = rows.nth(5).locator("td").all_inner_texts()
    assert [float(cell) for cell in last] == pytest.approx(
        site.weights(head=0)[5].tolist(), abs=6e-4
    )
    tab.keyboard.press("3")
    entropy = [
        float(row.locator("td").first.inner_text())
        for row in tab.locator("#view-panel table").first.locator("tbody tr").all()
    ]
    assert entropy == pytest.approx(site.entropy(0).tolist(), abs=6e-4)
    received = tab.locator("#view-panel table").nth(1).locator("td").all_inner_texts()
    assert [float(value) for value in received] == pytest.approx(
        site.received(0).tolist(), abs=6e-4
    )
    assert tab.locator("canvas, svg").count() == 0


def test_runs_sequences_and_sites_are_chosen(open_page) -> None:
    trace = translator()
    tab = open_page(trace)
    assert "decoder.0.cross" in tab.locator("#view-title").inner_text()
    tab.keyboard.press("t")
    tab.select_option("#run", "0")
    tab.select_option("#sequence", "1")
    settled(tab)
    head = int(tab.locator("#view-title .quiet").inner_text().split()[-1])
    weights = trace.runs[0].sites["decoder.0.cross"].weights(head=head, sequence=1)
    first = tab.locator("#view-panel tbody tr").first.locator("td").all_inner_texts()
    assert [float(cell) for cell in first[:3]] == pytest.approx(weights[0, :3].tolist(), abs=6e-4)
    assert all("masked" in cell for cell in first[3:]) and len(first) == 6
    tab.select_option("#site", "0")
    settled(tab)
    assert tab.locator("#view-panel tbody tr").count() == 4


def test_both_languages(open_page) -> None:
    tab = open_page(decoder(4), language=Language("zh"))
    assert tab.locator("#overview-title").inner_text() == "所有的头"
    assert tab.evaluate("document.documentElement.lang") == "zh-Hans"
    tab.select_option("#language", "en")
    assert tab.locator("#overview-title").inner_text() == "All heads"
    assert tab.evaluate("document.documentElement.lang") == "en"


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_dark_and_light(open_page, scheme: str) -> None:
    tab = open_page(decoder(4), color_scheme=scheme)
    theme = "document.documentElement.dataset.theme"
    assert tab.evaluate(theme) == scheme
    other = {"dark": "light", "light": "dark"}[scheme]
    tab.select_option("#theme", other)
    assert tab.evaluate(theme) == other
    tab.select_option("#theme", "auto")
    assert tab.evaluate(theme) == scheme


def test_tokens_are_never_run(open_page) -> None:
    wicked = [
        "<img src=x onerror=\"document.title='run'\">",
        "</script><script>document.title='run'</script>",
        "<svg onload=alert(1)>",
        "{@html 1}",
    ]
    tab = open_page(decoder(4, words=wicked))
    for key in ("2", "3", "t", "1"):
        tab.keyboard.press(key)
        tab.wait_for_function("document.title.includes('glassformer')")
    tab.locator("#view-panel table").wait_for()
    assert tab.locator("#view-panel img, #view-panel svg, #view-panel script").count() == 0
    assert tab.locator("#view-panel tbody bdi").all_inner_texts() == row_names(wicked)


@pytest.mark.parametrize("width", [360, 720, 1280])
def test_nothing_is_wider_than_the_window(open_page, width: int) -> None:
    tab = open_page(decoder(6, heads=16))
    tab.set_viewport_size({"width": width, "height": 800})
    for key in ("1", "2", "3", "t"):
        tab.keyboard.press(key)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("n", [6, 200])
def test_the_difference_from_the_model_is_stated(open_page, n: int) -> None:
    trace = decoder(n)
    first, second = trace
    first.out = gf.attention(first.q, first.k, first.v, mask=first.mask)
    tab = open_page(trace)
    told = tab.locator("#difference")
    tab.select_option("#site", "0")
    settled(tab)
    shown = told.inner_text().replace("−", "-")
    recorded, page = map(float, re.findall(r"at most (\S+e-\d+)", shown))
    assert recorded <= 1.05 * first.difference_from_output() + 1e-12
    assert recorded < page < 1e-2
    assert ("At 128 evenly spaced queries" in shown) == (n > 128)
    tab.select_option("#language", "zh")
    assert "模型自身" in told.inner_text()
    tab.select_option("#site", "1")
    settled(tab)
    assert second.out is None and "没有记录" in told.inner_text()
    tab.keyboard.press("t")  # as text, too
    assert told.is_visible()


def test_every_script_is_shown_whole(open_page) -> None:
    words = ["עברית", "العربية", "e\u0301", "👨\u200d👩\u200d👧", "\x1b[31m", "\u202ex"]
    tab = open_page(decoder(6, words=words))
    tab.keyboard.press("t")
    tab.locator("#view-panel table").wait_for()
    shown = tab.locator("#view-panel tbody bdi").all_inner_texts()
    assert shown == row_names([*words[:4], "U+001B[31m", "U+202Ex"])


def test_recorded_heads_keep_their_numbers(open_page) -> None:
    trace = decoder(4, layers=1, heads=2)
    site = trace["decoder.0.self"]
    site.heads = (3, 7)
    tab = open_page(trace, fragment="#scale=largest")
    tab.locator('[data-head="0 1"]').click()
    settled(tab)
    assert tab.locator("#view-title").inner_text().split() == ["decoder.0.self", "head", "7"]
    assert tab.locator(".above").all_inner_texts() == ["3", "7"]
