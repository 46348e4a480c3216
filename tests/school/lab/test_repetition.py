"""Several runs as one: a check holds only if it holds in each, and numbers keep their range."""

import io
import json

import pytest
from rich.console import Console

from glassformer.languages import CODES, Language
from glassformer.render.chart import Axis, Bars, Cells, Chart, Lines, Mark, Series
from glassformer.render.figure.chart import write_chart
from glassformer.render.numbers import Spread
from glassformer.render.terminal.chart import draw_chart
from glassformer.school.lab import NAMES, Check, Verdict, find_experiment
from glassformer.school.lab.experiment import Experiment
from glassformer.school.lab.repetition import combine_charts, combine_verdicts
from glassformer.school.lab.runner import run_experiment

TRAINED = {
    *("order", "residual", "warmup", "smoothing", "heads", "grouped", "lstm"),
    *("tokenization", "embeddings", "sampling", "induction"),
    *("long-context", "latent", "experts"),
    *("speculative", "forgetting"),
    *("power-law", "vision", "patching", "retrieval", "bottleneck"),
}


def verdict(heart, other, **values):
    return Verdict.of(Check("heart", heart, values), Check("other", other))


def test_what_is_trained_is_measured_with_three_seeds():
    several = {name for name in NAMES if find_experiment(name).n_seeds > 1}
    assert several == TRAINED
    assert all(find_experiment(name).n_seeds >= 3 for name in TRAINED)


@pytest.mark.parametrize(
    ("runs", "outcome"),
    [
        ([(True, True)] * 3, "holds"),
        ([(True, True), (True, False), (True, True)], "partly"),  # one run of one check
        ([(True, True), (False, True), (True, True)], "partly"),
        ([(True, True), (False, True), (False, True)], "fails"),
        ([(False, True)] * 3, "fails"),
        ([(True, False)] * 3, "partly"),
    ],
)
def test_holds_never_rests_on_some_of_the_runs(runs, outcome):
    assert combine_verdicts([verdict(*each) for each in runs]).outcome == outcome


def test_numbers_keep_their_range_and_names_are_listed():
    runs = [verdict(True, True, loss=loss, head=head, n=12) for loss, head in ((1.0, 3), (2.0, 5))]
    heart, other = combine_verdicts(runs).checks
    assert heart.values == {"loss": Spread(1.5, 1.0, 2.0), "head": "3, 5", "n": 12}
    assert str(heart.values["loss"]) == "1.5 (1–2)"
    assert (heart.n_runs, heart.n_held) == (2, 2)
    assert other.values == {}
    assert combine_verdicts(runs[:1]) is runs[0]


def lines(values, at=1.0):
    axis = Axis(label="x")
    series = (Series(name="a", values=tuple(values)),)
    return Lines(
        title="t", x=axis, y=axis, places=(1, 2, 3), series=series, marks=(Mark(name="m", at=at),)
    )


def bars(names, values):
    series = (Series(name="a", values=tuple(values)),)
    return Bars(title="t", y=Axis(label="y"), names=tuple(names), series=series)


def test_a_chart_of_several_runs_has_means_and_ranges():
    runs = [Chart((lines([1.0, 2.0, None], 1.0),)), Chart((lines([3.0, None, None], 2.0),))]
    (panel,) = combine_charts(runs).panels
    assert isinstance(panel, Lines)
    assert panel.series == (
        Series(name="a", values=(2.0, 2.0, None), low=(1.0, 2.0, None), high=(3.0, 2.0, None)),
    )
    assert panel.marks[0].at == 1.5
    assert combine_charts(runs[:1]) is runs[0]


def test_a_run_on_its_way_may_have_fewer_bars():
    (panel,) = combine_charts([Chart((bars("ab", [1.0, 3.0]),)), Chart((bars("a", [2.0]),))]).panels
    assert isinstance(panel, Bars)
    assert panel.names == ("a", "b")
    assert panel.series[0].values == (1.5, 3.0)
    assert panel.series[0].high == (2.0, 3.0)


def test_ranges_are_drawn(tmp_path):
    """In a file, and as words in a terminal."""
    runs = [Chart((lines([1.0, 2.0, None]), bars("ab", [1.0, None]))) for _ in range(2)]
    runs.append(Chart((lines([3.0, 4.0, None]), bars("ab", [2.5, None]))))
    chart = combine_charts(runs)
    write_chart(chart, tmp_path / "chart.svg", title="t", caption="c")
    drawn = (tmp_path / "chart.svg").read_text()
    assert "FillBetweenPolyCollection" in drawn and "LineCollection" in drawn
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(draw_chart(chart, width=78, language=Language("en")))
    words = console.export_text()
    assert "1.5 (1–2.5)" in words and "1–3" in words and "2–4" in words


@pytest.mark.plain
def test_cells_are_of_one_run():
    grid = Chart((Cells(title="", rows="r", columns="c", values=((1.0,),)),))
    with pytest.raises(TypeError, match="A grid of cells shows one run"):
        combine_charts([grid, grid])


def count_seed(size, seed, progress):
    progress(0.5, {"points": [float(seed)]})
    return {"points": [float(seed), 1.0, 2.0]}


def test_every_run_has_its_own_seed_and_charts_grow(monkeypatch):
    counted = Experiment(
        name="scale",
        look_at=(),
        measure=count_seed,
        judge=lambda numbers: Verdict.of(
            Check("steady", numbers["points"][0] < 6, {"least": 1, "most": numbers["points"][0]})
        ),
        draw=lambda numbers, _: Chart(
            (lines(numbers["points"] + [None] * (3 - len(numbers["points"]))),)
        ),
        n_seeds=3,
    )
    monkeypatch.setattr("glassformer.school.lab.runner.find_experiment", lambda _: counted)
    shares, shown = [], []
    report = run_experiment(
        "scale",
        seed=4,
        progress=shares.append,
        show=lambda measured: shown.append(measured.chart(Language("en")).panels[0]),
    )
    assert report.seeds == (4, 5, 6) and report.seed == 4
    assert [numbers["points"][0] for numbers in report.runs] == [4.0, 5.0, 6.0]
    assert shares == sorted(shares) and shares[-1] == 1
    assert [panel.series[0].values[0] for panel in shown] == [4.0, 4.5, 5.0]
    assert report.verdict.outcome == "partly"  # two of three seeds
    told = json.loads(json.dumps(report.as_dict(Language("en")), allow_nan=False))
    assert told["seed"] == 4 and told["seeds"] == [4, 5, 6]
    assert len(told["runs"]) == 3 and told["numbers"] == told["runs"][0]
    assert told["checks"][0]["values"]["most"] == {"mean": 5.0, "least": 4.0, "most": 6.0}
    assert (told["checks"][0]["held"], told["checks"][0]["runs"]) == (2, 3)
    assert told["checks"][0]["sentence"].endswith("[2 of 3 seeds]")
    assert told["chart"]["panels"][0]["series"][0]["low"] == [4.0, 1.0, 2.0]
    for code in CODES:
        assert "4" in report.describe_run(Language(code)) and "6" in report.describe_run(
            Language(code)
        )
    assert len(run_experiment("scale", n_seeds=1).runs) == 1
