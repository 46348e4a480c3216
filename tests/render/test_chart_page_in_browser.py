"""Charts in the browser: cells and bars tell their numbers, to hands, eyes and ears."""

import pytest
import torch

import glassformer as gf
from glassformer.analysis import Role, Sweep
from glassformer.languages import Language
from glassformer.render.chart import Cells, Chart
from glassformer.render.charts.attribution import chart_of_attribution
from glassformer.render.charts.lens import chart_of_lens
from glassformer.render.charts.sweep import chart_of_sweep
from glassformer.render.page.chart_document import draw_chart_page

pytestmark = pytest.mark.browser
ENGLISH = Language("en")


@pytest.fixture
def open_chart(open_file, tmp_path):
    def open_drawn(draw, *, language: Language = ENGLISH, **options):
        draw_chart_page(draw, tmp_path / "chart.html", language=language)
        tab = open_file(tmp_path / "chart.html", **options)
        tab.locator("main section").first.wait_for()
        return tab

    return open_drawn


@pytest.fixture(scope="module")
def trace():
    model = gf.load("writer")
    with torch.no_grad(), gf.watch(model, residual=True) as found:
        model(torch.tensor([model.tokenizer.encode("And God said unto")]))
    return found


def sweep() -> Sweep:
    return Sweep(
        over="heads",
        measured="logit a − b",
        rows=["decoder.0.self", "decoder.1.self"],
        columns=["0", "1", "2"],
        values=torch.tensor([[1.0, 3.0, 0.5], [1.0, 2.0, float("nan")]], dtype=torch.float64),
        clean=3.0,
        corrupted=1.0,
    )


def test_arrows_and_pointer_tell_the_top_tokens(open_chart, trace) -> None:
    lens = gf.logit_lens(trace, top=3)
    tab = open_chart(lambda language: chart_of_lens(lens, language))
    assert tab.locator("tbody td[data-column]").count() == 6 * 4
    tab.locator("[role=grid]").focus()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("End")
    readout = tab.locator(".readout")
    border = lens.borders.index("decoder.3.mlp")
    for token, share in zip(lens.labels[border][3], lens.probabilities[border, 3], strict=True):
        row = readout.locator("tr", has_text=token.replace(" ", "␣")).first
        assert row.locator("td").last.inner_text() == pytest.approx(percent(float(share)))
    active = tab.locator("[role=grid]").get_attribute("aria-activedescendant")
    assert tab.locator(f"#{active}").get_attribute("data-column") == "3"
    tab.locator("td[data-row='5'][data-column='0']").hover()
    assert "decoder.start" in readout.inner_text()
    tab.mouse.move(5, 5)
    assert "decoder.3.mlp" in readout.inner_text()  # what is chosen again


def percent(share: float) -> str:
    text = f"{100 * share:.1f}" if share >= 0.1 else f"{100 * share:.2g}"
    return f"{text.removesuffix('.0')} %"


def test_signed_cells_and_what_is_not_there(open_chart) -> None:
    tab = open_chart(lambda language: chart_of_sweep(sweep(), language))
    cell = "td[data-row='{}'][data-column='{}']"
    assert tab.locator(cell.format(0, 2)).get_attribute("aria-label").endswith("nothing here")
    assert "against" in tab.locator(cell.format(1, 2)).get_attribute("class")
    colours = [
        tab.locator(cell.format(1, c)).evaluate("e => getComputedStyle(e).backgroundColor")
        for c in range(3)
    ]
    assert len(set(colours)) == 3


def test_bars_have_their_numbers_beside_them(open_chart, trace) -> None:
    found = gf.attribute(trace, " him", against=" me", by="head")
    tab = open_chart(lambda language: chart_of_attribution(found, language, top=5))
    rows = tab.locator("tbody tr")
    assert rows.count() == 5 + 2
    first = found.top(1)[0]
    assert rows.first.locator("th").inner_text() == first.name
    shown = rows.first.locator("td").last.inner_text().replace("−", "-")
    assert float(shown) == pytest.approx(first.value, rel=1e-2)


def test_language_and_theme_are_kept_in_the_address(open_chart) -> None:
    tab = open_chart(lambda language: chart_of_sweep(sweep(), language))
    tab.locator("#language").select_option("zh")
    tab.locator("#theme").select_option("dark")
    assert "激活修补" in tab.locator("h2").first.inner_text()
    assert tab.evaluate("location.hash") == "#theme=dark&lang=zh"
    tab.reload()
    tab.locator("html[lang=zh-Hans][data-theme=dark]").wait_for()
    assert "受损" in tab.locator(".note").inner_text()


def test_long_texts_and_many_cells(open_chart) -> None:
    names = tuple("word" * 50 for _ in range(200))
    wide = Cells(
        title="wide",
        rows="layer",
        columns="token",
        values=((0.5,) * 200,) * 33,
        row_names=tuple(f"decoder.{i}.mlp" for i in range(33)),
        column_names=names,
        texts=(names,) * 33,
    )
    tab = open_chart(lambda _: Chart((wide,)))
    assert tab.locator("td[data-column]").count() < 1000  # those in sight, of 6,600
    assert tab.locator("[role=grid]").get_attribute("aria-colcount") == "201"
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.locator("[role=grid]").focus()
    for key, column in (("End", "199"), ("ArrowLeft", "198"), ("Home", "0"), ("ArrowRight", "1")):
        tab.keyboard.press(key)
        cell = tab.locator("td.isChosen")
        cell.wait_for()
        assert cell.get_attribute("data-column") == column
        where, names = cell.bounding_box(), tab.locator("tbody th").first.bounding_box()
        assert names["x"] + names["width"] <= where["x"] + 1 and where["x"] + where["width"] < 1280
        assert where["width"] == pytest.approx(104, abs=1)


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_chart, trace, scheme, width) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    role = Role(layer_head=("decoder.0.self", 1), role="induction", score=1.0, sink=0.0, scores={})
    lens, found = gf.logit_lens(trace), gf.attribute(trace, " him", by="head")

    def all_of_them(language: Language) -> Chart:
        charts = (
            chart_of_lens(lens, language),
            chart_of_sweep(sweep(), language, [role]),
            chart_of_attribution(found, language),
        )
        return Chart(tuple(p for c in charts for p in c.panels), "title", "caption")

    tab = open_chart(all_of_them, width=width, color_scheme=scheme)
    for language in ("en", "zh"):
        tab.locator("#language").select_option(language)
        violations = axe.run(tab).response["violations"]
        assert [f"{v['id']}: {n['html']}" for v in violations for n in v["nodes"]] == []
