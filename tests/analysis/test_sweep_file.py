"""Sweeps that are interrupted continue where they were."""

from pathlib import Path
from typing import Any

import pytest
import torch

import glassformer as gf
from glassformer.analysis import Sweep
from glassformer.errors import TraceError
from letter_models import letter_model

TEXTS = "abcde", "abxde"


def options(**given: Any) -> Any:
    return {"over": "parts × positions", "metric": ("q", "z"), "batch": 4, **given}


def test_an_interrupted_sweep_continues(tmp_path: Path) -> None:
    model, path = letter_model("decoder", n_layers=2), tmp_path / "sweep.json"
    whole = gf.sweep(model, *TEXTS, **options())

    def interrupt(done: int, _total: int) -> None:
        if done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gf.sweep(model, *TEXTS, **options(resume=path, report=interrupt))
    with pytest.raises(TraceError, match=r"not finished\. Continue it by resume="):
        Sweep.load(path)
    reports: list[tuple[int, int]] = []
    found = gf.sweep(
        model, *TEXTS, **options(resume=path, report=lambda n, total: reports.append((n, total)))
    )
    assert reports[0] == (10, 20) and reports[-1] == (20, 20)  # eight of twenty were done
    assert torch.equal(found.values, whole.values)
    assert torch.equal(Sweep.load(path).values, whole.values)
    reports.clear()
    again = gf.sweep(model, *TEXTS, **options(resume=path, report=lambda *n: reports.append(n)))
    assert not reports and torch.equal(again.values, whole.values)
    assert list(tmp_path.iterdir()) == [path]


def test_edges_and_estimates_continue_too(tmp_path: Path) -> None:
    model = letter_model("decoder", n_layers=2)
    for given in ({"over": "edges"}, {"method": "both"}):
        path = tmp_path / f"{len(given)}{next(iter(given))}.json"
        first = gf.sweep(model, *TEXTS, **options(resume=path, **given))
        again = gf.sweep(model, *TEXTS, **options(resume=path, **given))
        assert again.as_dict() == first.as_dict() == Sweep.load(path).as_dict()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"metric": ("q", "y")}, "measured"),
        ({"metric": ("q", "y")}, "another sweep"),
        ({"over": "parts"}, "over and columns differ"),
        ({"position": 3}, "position"),
        ({"corrupted": "abyde"}, "texts"),
        ({"n_layers": 3}, "model, rows"),
        ({"seed": 3}, "clean value and corrupted value differ"),
    ],
)
def test_another_sweep_is_not_continued(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    path = tmp_path / "sweep.json"
    gf.sweep(letter_model("decoder", n_layers=2), *TEXTS, **options(resume=path))
    before = path.read_bytes()
    given = dict(given)
    model = letter_model("decoder", n_layers=given.pop("n_layers", 2))
    if given.pop("seed", None):
        for p in model.parameters():
            p.data.mul_(0.9)
    texts = TEXTS[0], given.pop("corrupted", TEXTS[1])
    with pytest.raises(TraceError, match=said):
        gf.sweep(model, *texts, **options(resume=path, **given))
    assert path.read_bytes() == before


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path, model = tmp_path / "notes.txt", letter_model("decoder", n_layers=2)
    path.write_text("my notes")
    with pytest.raises(TraceError, match="is not a saved sweep"):
        gf.sweep(model, *TEXTS, **options(resume=path))
    assert path.read_text() == "my notes"
    saved = tmp_path / "saved.json"
    gf.sweep(model, *TEXTS, **options()).save(saved)
    with pytest.raises(TraceError, match=r"finished sweep\. Name another file"):
        gf.sweep(model, *TEXTS, **options(resume=saved))
