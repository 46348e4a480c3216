"""Charts of numbers: as values, in the terminal, as files."""

import json

import pytest
from rich.cells import cell_len
from rich.console import Console

from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.render.chart import Axis, Bars, Cells, Chart, Lines, Mark, Series, axis_limits
from glassformer.render.figure.chart import check_chart_file, write_chart
from glassformer.render.numbers import format_brief
from glassformer.render.terminal.chart import draw_chart, ticks

ENGLISH = Language("en")


def lines(**changes):
    given = {
        "title": "growth",
        "x": Axis(label="length", log=True),
        "y": Axis(label="seconds", log=True),
        "places": (1, 10, 100),
        "series": (
            Series(name="square", values=(1.0, 100.0, 10000.0)),
            Series(name="linear", values=(1.0, 10.0, None)),
        ),
        **changes,
    }
    return Lines(**given)


def drawn(*panels, width=60, language=ENGLISH):
    console = Console(width=width, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(draw_chart(Chart(panels), width=width, language=language))
    return captured.get()


def test_points_stand_where_their_numbers_say():
    out = drawn(lines()).splitlines()
    rows = [line for line in out if "┤" in line or "│" in line]
    assert len(rows) == 13
    assert rows[0].startswith("10000 ┤") and rows[0].endswith("●")
    assert rows[6].split("┤")[1].index("●") == rows[9].split("┤")[1].index("○")
    assert rows[12].startswith("    1 ┤*")  # both begin at 1
    assert "* points of several series coincide" in "\n".join(out)


def test_every_number_is_in_the_table():
    out = drawn(lines())
    for number in ("10000", "100", "10", "–"):
        assert number in out
    assert out.index("● square") < out.index("○ linear")


def test_a_line_through_equal_numbers_is_drawn():
    flat = lines(y=Axis(label="y"), series=(Series(name="one", values=(2.0, 2.0, 2.0)),))
    assert drawn(flat).count("●") == 3


def test_what_a_log_side_cannot_hold_is_left_out_and_still_in_the_table():
    with_zero = lines(series=(Series(name="one", values=(0.0, 1.0, 10.0)),))
    out = drawn(with_zero)
    assert out.count("●") == 2


def test_marks_cross_the_panel():
    marked = lines(marks=(Mark(name="chance", at=10), Mark(name="trained", at=10, side="x")))
    out = drawn(marked)
    assert "╌╌╌" in out and "┊" in out
    assert "╌ chance (10)" in out and "┊ trained (10)" in out


def test_bars_are_as_long_as_their_numbers():
    bars = Bars(
        title="sizes",
        y=Axis(label="bytes"),
        names=("a", "二"),
        series=(Series(name="bytes", values=(4, 2)),),
    )
    first, second = (line.count("█") for line in drawn(bars).splitlines()[2:4])
    assert first == 2 * second > 0


def test_bars_without_a_number_and_below_zero():
    bars = Bars(
        title="sizes",
        y=Axis(label="bytes"),
        names=("a", "b", "c"),
        series=(Series(name="one", values=(None, -1.0, 1.0)),),
    )
    rows = drawn(bars).splitlines()[2:5]
    assert "–" in rows[0] and "−1" in rows[1] and rows[1].count("█") < rows[2].count("█")


def test_cells_tell_nothing_from_little():
    cells = Cells(title="map", rows="i", columns="j", values=((1.0, 0.0), (1e-9, 0.5)))
    rows = drawn(cells).splitlines()[2:4]
    assert rows[0].rstrip() == "██·" and rows[1].rstrip() == "░░▓▓"


def test_many_cells_are_thinned():
    cells = Cells(title="map", rows="i", columns="j", values=((1.0,) * 500,) * 500)
    assert max(map(cell_len, drawn(cells).splitlines())) <= 64


@pytest.mark.parametrize("width", [48, 100])
@pytest.mark.parametrize("code", ["en", "zh"])
def test_charts_keep_to_the_width(width, code):
    wide = lines(series=tuple(Series(name=f"名字 {i}", values=(1.0, 2.0, 3.0)) for i in range(4)))
    out = drawn(wide, width=width, language=Language(code))
    assert max(map(cell_len, out.splitlines())) <= width


def test_sides():
    assert axis_limits(Axis(label="", log=True), [0.0, 4.0, 16.0]) == (4.0, 16.0)
    assert axis_limits(Axis(label=""), [3.0]) == (2.5, 3.5)
    assert axis_limits(Axis(label="", least=0, most=1), [5.0]) == (0, 1)
    assert ticks(Axis(label=""), -1, 1) == [-1, -0.5, 0, 0.5, 1]
    assert ticks(Axis(label="", log=True), 2, 3) == [2, 3]
    assert len(ticks(Axis(label="", log=True), 1e-12, 1e3)) <= 5


def test_numbers_in_three_digits():
    shown = [
        format_brief(x)
        for x in (0, 1, 0.5, 1.0003, 123.456, 1e-5, 7e6, float("nan"), float("-inf"))
    ]
    assert shown == ["0", "1", "0.5", "1.00", "123", "1e−5", "7000000", "NaN", "−∞"]


def test_a_chart_is_plain_values():
    cells = Cells(title="map", rows="i", columns="j", values=((1.0,),))
    plain = Chart((lines(), cells)).as_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["panels"][0]["x"]["log"] is True
    assert plain["panels"][0]["series"][1]["values"] == [1.0, 10.0, None]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_files(tmp_path, suffix):
    pytest.importorskip("matplotlib")
    bars = Bars(
        title="价格 $1$",
        y=Axis(label="y", log=True),
        names=("a", "b"),
        series=(Series(name="one", values=(1.0, None)), Series(name="two", values=(3.0, 4.0))),
        marks=(Mark(name="m", at=2),),
    )
    cells = Cells(title="map", rows="i", columns="j", values=((1.0, 0.0), (0.0, 2.0)))
    marked = lines(marks=(Mark(name="chance", at=10), Mark(name="trained", at=10, side="x")))
    path = tmp_path / f"a.{suffix}"
    write_chart(Chart((marked, bars, cells)), path, title="t" * 300, caption="说明。" * 100)
    assert path.stat().st_size > 1000


@pytest.mark.plain
@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("a.gif", r"must be a \.png, \.svg or \.pdf file; got 'a\.gif'"),
        ("none/a.png", r"folder of a figure must exist; .*none does not\. Create it first"),
        (".png", r"must be a \.png, \.svg or \.pdf file; got '\.png'"),
    ],
)
def test_files_that_cannot_be(tmp_path, path, sentence):
    with pytest.raises(ConfigError, match=sentence):
        check_chart_file(tmp_path / path)


def named_cells(**changes):
    given = {
        "title": "effects",
        "rows": "layer",
        "columns": "head",
        "values": ((1.0, -0.5), (0.0, None)),
        "row_names": ("upper", "lower"),
        "column_names": ("0", "␣cat"),
        "is_signed": True,
        "legend": "effect",
        **changes,
    }
    return Cells(**given)


def test_signed_cells_show_sign_and_size_without_colour():
    rows = drawn(named_cells()).splitlines()[2:4]
    assert rows[0].split() == ["upper", "█+▓−"] and rows[1].split() == ["lower", "·"]


def test_cells_with_texts_show_them_below_their_names():
    out = drawn(named_cells(texts=(("dog", "hippopotamus"), ("", "x")))).splitlines()
    assert out[2].split() == ["0", "␣cat"]
    assert out[3].split() == ["upper", "dog", "hippopot…"]
    assert out[2].index("␣cat") == out[3].index("hippopot…")


def test_texts_that_do_not_fit_are_counted():
    wide = named_cells(values=((1.0,) * 30,), texts=(("token",) * 30,), row_names=("end",))
    wide = drawn(
        named_cells(values=wide.values, texts=wide.texts, row_names=("end",), column_names=())
    )
    assert max(map(cell_len, wide.splitlines())) <= 60
    assert "of 30 columns are shown" in wide


def test_signed_bars_are_as_long_as_their_size():
    bars = Bars(
        title="shares",
        y=Axis(label="logit"),
        names=("a", "b", "rest"),
        series=(Series(name="one", values=(-2.0, 1.0, 0.0)),),
        is_signed=True,
        n_rest=1,
    )
    rows = drawn(bars).splitlines()[2:5]
    assert rows[0].count("█") == 2 * rows[1].count("█") > 0 == rows[2].count("█")


@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (97, 200)])
@pytest.mark.parametrize("has_texts", [False, True])
def test_cells_as_svg_have_real_text_in_every_size(tmp_path, shape, has_texts):
    pytest.importorskip("matplotlib")
    rows, columns = shape
    cells = named_cells(
        values=((-0.25,) * columns,) * rows,
        texts=(("字$x$",) * columns,) * rows if has_texts else (),
        row_names=tuple(f"decoder.{i}.mlp" for i in range(rows)),
        column_names=("word" * 30,) * columns,
    )
    path = tmp_path / "a.svg"
    write_chart(Chart((cells,)), path, title="title", caption="caption")
    svg = path.read_text("utf-8")
    assert ">decoder.0.mlp<" in svg and ">effect<" in svg and ">title<" in svg
    from glassformer.render.figure import fonts

    shown = "字$x$" if fonts.has_chinese() else "U+5B57$x$"
    assert svg.count(f">{shown}<") == (rows * columns if has_texts and columns < 200 else 0)


def test_zero_has_the_colour_of_the_paper_and_signs_have_their_own():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from glassformer.render.figure.cells import draw_cells

    axes = Figure().subplots()
    draw_cells(axes, named_cells(values=((1.0, 0.0, -1.0),), row_names=(), column_names=()))
    (image,) = axes.images
    plus, zero, minus = image.cmap(image.norm(image.get_array()))[0].tolist()
    assert zero == pytest.approx([1, 1, 1, 1], abs=0.01)
    assert plus[0] < plus[1] and minus[0] > minus[1]  # green and orange
