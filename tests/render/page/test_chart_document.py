"""The page of a chart: the numbers once, and what differs between languages."""

import json
import re

import pytest

from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.render.chart import Axis, Bars, Cells, Chart, Series
from glassformer.render.page.chart_document import MOST_CELLS, chart_html, draw_chart_page

ENGLISH = Language("en")


def chart(language: Language) -> Chart:
    say = language.say
    cells = Cells(
        title=say("chart.roles"),
        rows="",
        columns="x",
        values=((0.5, None),),
        texts=(("</script><b>", "\ud800"),),
        measure_names=(say("figure.entropy"),),
        measures=(((1.0, 2.0),),),
        lists=(((("a", 0.5),), ()),),
    )
    bars = Bars(
        title="", y=Axis(label="y"), names=("a",), series=(Series(name="s", values=(1.0,)),)
    )
    return Chart((cells, bars), "title", say("chart.roles.caption"))


def page_data(text: str) -> dict:
    (found,) = re.findall(r'<script type="application/json" id="page">(.*?)</script>', text, re.S)
    return json.loads(found)


def test_numbers_are_stored_once() -> None:
    data = page_data(chart_html(chart, ENGLISH))
    assert data["kind"] == "chart" and data["language"] == "en"
    assert data["chart"]["panels"][0]["values"] == [[0.5, None]]
    assert data["chart"]["panels"][0]["lists"] == [[[["a", 0.5]], []]]
    (other,) = data["others"].values()
    assert other["panels"] == [{"title": "各个头的角色", "measure_names": ["熵（奈特）"]}, {}]
    assert "角色" in other["caption"]


def test_a_token_cannot_end_the_data() -> None:
    text = chart_html(chart, ENGLISH)
    assert "</script><b>" not in text
    assert page_data(text)["chart"]["panels"][0]["texts"][0][0] == "</script><b>"


def test_only_pages_are_overwritten(tmp_path) -> None:
    path = tmp_path / "a.html"
    draw_chart_page(chart, path, language=ENGLISH)
    draw_chart_page(chart, path, language=ENGLISH)
    path.write_text("mine")
    with pytest.raises(TraceError):
        draw_chart_page(chart, path, language=ENGLISH)
    assert path.read_text() == "mine"
    with pytest.raises(TraceError, match=r"must be an \.html file; got 'a\.png'"):
        draw_chart_page(chart, tmp_path / "a.png", language=ENGLISH)


def test_too_many_cells_are_refused() -> None:
    columns = MOST_CELLS // 2 + 1
    huge = Cells(title="", rows="", columns="", values=((0.0,) * columns,) * 2)
    with pytest.raises(TraceError, match=r"up to 40,000 cells; got 2 × 20001 = 40,002\. Select"):
        chart_html(lambda _: Chart((huge,)), ENGLISH)
