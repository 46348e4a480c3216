"""Every experiment at quick size, with one seed: its numbers are as the claim says, and it draws.

What several seeds give together is tested in test_repetition.
"""

import itertools
import json
import math
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
import torch

import glassformer
from glassformer.languages import CODES, Language
from glassformer.render.chart import Bars, Cells, Lines
from glassformer.school.lab import NAMES, find_experiment
from glassformer.school.lab.experiment import OUTCOMES
from glassformer.school.lab.runner import run_experiment

pytestmark = pytest.mark.plain  # they train: with every signature checked, four times as long
SOURCE = Path(glassformer.__file__).parent
# What depends on how fast a machine is, beside everything that does not.
TIMED = {
    "linear": {"slower"},
    "batched": {"quicker", "wasteful"},
    "complexity": {"seconds", "linear_seconds", "crossing"},
    "fused": {"quicker"},
    "cache": {"growth", "quicker"},
    "lstm": {"speed"},
}


PARTIAL = {}  # charts drawn while an experiment ran, in both languages


@cache
def report(name):
    PARTIAL[name] = []
    n = itertools.count()

    def show(measured):
        if next(n) % 5 == 0:  # of training, every fifth step
            charts = [measured.plain_chart(Language(code)) for code in CODES]
            PARTIAL[name].append(json.loads(json.dumps(charts, allow_nan=False)))

    return run_experiment(name, size="quick", show=show, n_seeds=1)


def numbers(name):
    (found,) = report(name).runs
    return found


@pytest.mark.parametrize("name", NAMES)
def test_what_does_not_depend_on_speed_holds(name):
    checks = {check.key: check for check in report(name).verdict.checks}
    untimed = set(checks) - TIMED.get(name, set())
    assert untimed
    for key in untimed:
        assert checks[key].holds, (key, checks[key].values)
    assert report(name).verdict.outcome in OUTCOMES[:2]


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_plain_and_a_report_is_json(name):
    assert json.loads(json.dumps(numbers(name))) == json.loads(json.dumps(numbers(name)))
    for code in CODES:
        told = json.loads(json.dumps(report(name).as_dict(Language(code)), allow_nan=False))
        assert told["name"] == name and told["outcome"] == report(name).verdict.outcome
        assert [check["holds"] for check in told["checks"]] == [
            check.holds for check in report(name).verdict.checks
        ]
        assert told["chart"]["panels"]


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_has_a_number_for_every_place(name):
    charts = [report(name).chart(Language(code)) for code in CODES]
    for panel in charts[0].panels:
        assert panel.title
        if isinstance(panel, Cells):
            assert len({len(row) for row in panel.values}) == 1
            continue
        assert isinstance(panel, Lines | Bars)
        places = panel.places if isinstance(panel, Lines) else panel.names
        for series in panel.series:
            assert len(series.values) == len(places)
            assert all(v is None or math.isfinite(v) for v in series.values)
            assert any(v is not None for v in series.values)
    english, chinese = ([type(panel) for panel in chart.panels] for chart in charts)
    assert english == chinese and charts[0] != charts[1]


def values(panel):
    rows = panel["values"] if panel["kind"] == "cells" else (s["values"] for s in panel["series"])
    return [list(row) for row in rows]


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_grows_into_that_of_the_report(name):
    final = [report(name).as_dict(Language(code))["chart"]["panels"] for code in CODES]
    assert PARTIAL[name]
    counts = []
    for charts in PARTIAL[name]:
        for chart, whole in zip(charts, final, strict=True):
            assert [p["title"] for p in chart["panels"]] == [p["title"] for p in whole]
            for panel in chart["panels"]:
                places = panel.get("places", panel.get("names"))
                assert places is None or {len(row) for row in values(panel)} == {len(places)}
        known = [v for p in charts[0]["panels"] for row in values(p) for v in row if v is not None]
        counts.append(len(known))
    assert counts == sorted(counts)
    whole = sum(v is not None for p in final[0] for row in values(p) for v in row)
    if name != "positions-picture":  # whose picture is known before its matrices are fitted
        assert counts[0] < whole
    if name in ("scale", "residual", "order", "lstm", "grouped"):  # where no number moves any more
        for panel, last in zip(PARTIAL[name][-1][0]["panels"], final[0], strict=True):
            for row, end in zip(values(panel), values(last), strict=True):
                assert all(a in (None, b) for a, b in zip(row, end, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_what_to_look_at_exists(name):
    places = find_experiment(name).places
    assert places
    for file, thing in places:
        assert (SOURCE / file).is_file(), file
        module = import_module(f"glassformer.{file.removesuffix('.py').replace('/', '.')}")
        found = getattr(module, thing)
        assert getattr(found, "__module__", module.__name__) == module.__name__


def test_variance_is_the_width():
    found = numbers("scale")
    for width, variance in zip(found["widths"], found["variance_plain"], strict=True):
        assert variance == pytest.approx(width, rel=0.25)
    assert found["largest_plain"] == sorted(found["largest_plain"])
    assert found["gradient_plain"][-1] < 1e-2 * found["gradient_scaled"][-1]


def test_exp_ends_where_the_dtype_does():
    found = numbers("low-precision")
    for name, most in (("float16", math.log(65504)), ("float32", math.log(3.4e38))):
        for largest, share in zip(found["largest"], found[f"plain_{name}"], strict=True):
            if largest > most:
                assert share == 1
            if largest < most - math.log(32):  # a sum of 32 terms ends sooner than one
                assert share == 0
    assert found["filled"]["float16"]["cast"] == -math.inf
    assert found["filled"]["float32"]["cast"] == -1e9
    assert not found["filled"]["bfloat16"]["refused"]


def test_the_jacobian_is_a_triangle():
    found = numbers("masks")
    for way in ("library", "infinity", "billion"):
        jacobian = torch.tensor(found["jacobians"][way])
        assert not jacobian.triu(1).any()
        assert (jacobian.tril().flatten() > 0).sum() == jacobian.tril().count_nonzero()
        assert jacobian.diagonal().min() > 0
    assert torch.tensor(found["jacobians"]["after"]).triu(1).count_nonzero() > 0


def test_three_ways_are_one():
    found = numbers("linear")
    assert all(found["flattened_bits"]) and found["leak"] == 0
    for dtype in ("float32", "float64"):
        assert max(found[f"token_{dtype}"]) < 64  # units of the last place
    assert set(found["seconds"]) == {"whole", "flattened", "token"}


def test_many_small_products_are_one():
    found = numbers("batched")
    assert max(found["apart"]["loop"] + found["apart"]["big"]) < 1e-12
    assert len(found["broadcast"]) == 4 and all(found["broadcast"].values())


def most_frequent_before(length, vocabulary=12, asked=12, draws=2000):
    """How often the most frequent of all tokens before a place is the one just before it."""
    drawn = torch.Generator().manual_seed(0)
    tokens = torch.randint(vocabulary, (draws, length), generator=drawn)
    right = []
    for place in range(length - asked, length):
        counts = torch.nn.functional.one_hot(tokens[:, :place], vocabulary).sum(1)
        ties = 0.1 * torch.rand(counts.shape, generator=drawn)
        right.append((counts + ties).argmax(-1) == tokens[:, place - 1])
    return torch.stack(right).float().mean().item()


def test_only_positions_know_the_order():
    found = numbers("order")
    assert found["shuffled"]["none"] < 1e-12
    inside = found["lengths"].index(found["trained"])
    twice = found["lengths"].index(2 * found["trained"])
    assert found["heads"] == [4, 8]
    for by_length in found["right"]["rotary"]:
        assert by_length[inside] > 0.9
    for by_length in (*found["right"]["learned"], *found["right"]["sinusoidal"]):
        assert by_length[-1] < 0.25
    # At most, a layer without positions makes use of which tokens occur.
    blind = most_frequent_before(found["trained"])
    assert 0.15 < blind < 0.22
    assert all(by_length[inside] < blind + 0.05 for by_length in found["right"]["none"])
    few, many = found["right"]["alibi"]
    assert few[inside] < 0.7 < many[inside] and many[-1] > 0.7
    few, many = found["right"]["rotary"]
    assert few[twice] > 0.3 > many[twice]


def test_gradients_by_depth():
    found = numbers("residual")
    gradients = found["gradients"]
    assert all(len(sizes) == found["depth"] + 1 for sizes in gradients.values())
    assert gradients["plain"] == sorted(gradients["plain"])
    assert gradients["plain"][0] < 1e-4 * gradients["plain"][-1]
    for way in ("residual", "post", "pre"):
        assert min(gradients[way]) > 0.2 * max(gradients[way])


def test_recall_by_distance():
    found = numbers("lstm")
    assert min(found["right"]["transformer"]) > 0.9 > 0.7 > max(found["right"]["lstm"])
    assert min(found["right"]["lstm_attention"]) > 0.85
    counts = found["parameters"].values()
    assert max(counts) < 1.05 * min(counts)
    for seconds in found["seconds"].values():
        assert len(seconds) == len(found["lengths"]) and min(seconds) > 0


def test_one_head_is_worth_more_than_another():
    found = numbers("heads")
    assert found["whole"] > 0.8
    assert len(found["heads"]) == 16
    best = max(found["heads"], key=lambda head: head["induction"])
    assert best["layer"] == 1 and best["induction"] > 0.3
    assert min(head["right"] for head in found["heads"]) < found["whole"] - 0.3


def test_a_cache_changes_nothing_but_the_cost():
    found = numbers("cache")
    assert max(found["apart"]) < 1e-5
    # keys and values of 2 layers of width 128, 4 bytes each
    assert found["bytes"] == [2 * 2 * 128 * 4 * length for length in found["lengths"]]


def test_memory_by_length():
    found = numbers("fused")
    assert max(found["error_fused"]) < 1e-5
    # the matrix of scores alone: four heads of L² numbers
    for length, held in zip(found["lengths"], found["bytes_written"], strict=True):
        assert held > 4 * length**2 * 4
    assert found["bytes_fused"][-1] < 4 * found["lengths"][-1] ** 2 * 4 / 10
    squared = numbers("complexity")
    ratio = squared["bytes_attention"][-1] / squared["bytes_attention"][-2]
    assert 3.5 < ratio < 4.1
    assert squared["bytes_linear"][-1] / squared["bytes_linear"][-2] == pytest.approx(2, rel=0.05)


def test_dropout_is_right_on_average():
    found = numbers("dropout")
    assert max(found["off"]) < 1.8
    for measured, theory in zip(found["variance"], found["theory"], strict=True):
        assert measured == pytest.approx(theory, rel=0.15)


def test_grouped_heads_shrink_the_cache_in_proportion():
    found = numbers("grouped")
    assert [size / found["bytes"][0] for size in found["bytes"]] == [1, 1 / 4, 1 / 8]
    assert max(found["apart"]) < 1e-12 and min(found["right"]) > 0.8
    assert found["parameters"] == sorted(found["parameters"], reverse=True)


def test_smoothing_makes_unsure():
    found = numbers("smoothing")
    assert found["entropy"] == sorted(found["entropy"])
    assert found["calibration"][-1] < 0.8 * found["calibration"][0]
    assert 0 < found["true_entropy"] < math.log(12)


def test_without_warmup_a_deep_post_norm_stack_stays_where_it_is():
    curves = numbers("warmup")["curves"]
    ends = {name: sum(curve[-10:]) / 10 for name, curve in curves.items()}
    assert ends["post_cold"] > 2.3 > 1.8 > ends["post_warm"]
    assert ends["pre_cold"] < 0.5 and ends["pre_warm"] < 0.5


def test_every_error_is_one():
    errors = numbers("errors")["errors"]
    assert len(errors) == 15
    assert {name for name, each in errors.items() if each["raised"]} == {
        "viewed",
        "billion",
        "unimported",
    }
    assert errors["emptied"]["wrong"] == math.inf
    assert max(each["right"] for each in errors.values()) < 1e-4


def test_sinusoids_turn():
    found = numbers("positions-picture")
    assert max(found["shift_errors"].values()) < 1e-10
    assert found["similarity"][0] == pytest.approx(1)
    assert max(found["similarity"][1:]) < 1
    table = torch.tensor(found["table"]).T * 2 - 1
    expected = [math.sin(3), math.cos(3)]
    assert table[3, :2].tolist() == pytest.approx(expected, abs=1e-6)
