"""`glassformer lab`: the list, a run in both languages, as JSON and as a file, and refusals."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest
from rich.cells import cell_len

from glassformer.cli import lab
from glassformer.school.lab import NAMES, SECONDS

QUICK = ("--size", "quick")


def test_the_list_names_every_experiment_with_its_claim_and_time(run):
    code, out, err = run("lab")
    assert (code, err) == (0, "")
    for name in NAMES:
        assert re.search(rf"^{name} ", out, re.MULTILINE)
    assert "Scores must be divided by √d_k" in out
    assert f"(about {SECONDS['scale']['full']} s)" in " ".join(out.split())
    assert max(map(cell_len, out.splitlines())) <= 80
    chinese = run("lab", "--lang", "zh")[1]
    assert "分数必须除以 √d_k" in chinese and "不要轻信" in chinese
    assert f"（约 {SECONDS['scale']['full']} 秒）" in re.sub(r"\n *", "", chinese)


def test_a_run_has_claim_prediction_figure_numbers_verdict_and_place(run):
    code, out, err = run("lab", "scale", *QUICK)
    assert (code, err) == (0, "")
    parts = ["Claim", "Prediction", "Measured", "Verdict", "Why", "In the code"]
    lines = out.splitlines()
    assert [line for line in lines if line in parts] == parts
    assert "● q · k" in out and "○ q · k / √d_k" in out
    assert re.search(r"^  holds$", out, re.MULTILINE)
    assert out.count("✓") == 4 and "✗" not in out
    assert "fromscratch/function.py  attention" in out
    assert "quick, seed 0" in out
    assert max(map(cell_len, lines)) <= 80


def test_the_same_in_chinese(run):
    code, out, err = run("lab", "scale", *QUICK, "--lang", "zh")
    assert (code, err) == (0, "")
    for word in ("论断", "预测", "测量", "结论", "为什么", "对应代码", "成立"):
        assert re.search(rf"^ *{word}", out, re.MULTILINE), word
    assert max(map(cell_len, out.splitlines())) <= 80


@pytest.mark.parametrize("width", [50, 100])
def test_the_width_is_kept(run, width):
    _, out, _ = run("lab", "masks", *QUICK, COLUMNS=width)
    assert max(map(cell_len, out.splitlines())) <= width


def test_json_has_numbers_chart_and_verdict(run):
    code, out, err = run("lab", "masks", *QUICK, "--json", "--seed", "5", "--lang", "zh")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["name"], told["size"], told["seed"]) == ("masks", "quick", 5)
    assert told["outcome"] == "holds" and len(told["checks"]) == 5
    assert told["numbers"]["leaks"]["infinity"] == 0
    kinds = [panel["kind"] for panel in told["chart"]["panels"]]
    assert kinds == ["cells", "cells", "bars"]
    assert told["look_at"][0] == "fromscratch/masked_single_head.py:MaskedSingleHead"


def test_what_is_no_number_is_null_in_json(run):
    told = json.loads(run("lab", "errors", *QUICK, "--json")[1])
    assert told["numbers"]["errors"]["viewed"]["wrong"] is None
    assert told["numbers"]["errors"]["emptied"]["wrong"] is None


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pictures(run, tmp_path, language):
    pytest.importorskip("matplotlib")
    png, svg = tmp_path / "a.png", tmp_path / "a.svg"
    words = ("lab", "masks", *QUICK, "--png", png, "--svg", svg, "--lang", language)
    code, _, err = run(*words)
    assert (code, err) == (0, "")
    assert png.read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in svg.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "a.svg"]


@pytest.mark.plain
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("lab", "scal"), "got 'scal'. Did you mean scale?"),
        (("lab", "scale", "--size", "big"), "The size must be quick or full; got 'big'"),
        (("lab", "scale", "--seed", "-1"), "The seed must be at least 0 and below 2⁶³; got -1"),
        (("lab", "scale", "--model", "x"), "Only the experiment heads takes a saved model"),
        (("lab", "heads", "--model", "nowhere"), "nowhere"),
        (("lab", "scale", "--png", "a.jpg"), "must end in .png; got 'a.jpg'"),
        (("lab", "scale", "--svg", "a.png"), "must end in .svg; got 'a.png'"),
        (
            ("lab", "scale", "--png", "no/such/a.png"),
            "folder of a figure must exist; no/such does not",
        ),
        (("lab", "--json"), "Choose one of: linear, batched"),
        (("lab", "--seed", "3"), "need an experiment"),
    ],
)
def test_refusals(run, words, sentence):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert sentence in err and err.count("\n") == 1


@pytest.mark.plain
def test_a_folder_is_no_picture(run, tmp_path):
    (tmp_path / "a.png").mkdir()
    code, _, err = run("lab", "scale", "--png", tmp_path / "a.png")
    assert code == 2 and "is a folder. Choose another name" in err


@pytest.mark.plain
def test_a_folder_that_cannot_be_written_is_told_before_anything_is_measured(
    run, tmp_path, monkeypatch
):
    monkeypatch.setattr(lab, "progress_bar", lambda _: pytest.fail("measured"))
    code, _, err = run("lab", "warmup", "--png", tmp_path / "none" / "a.png")
    assert code == 2 and "Create it first" in err


@pytest.mark.plain
def test_a_full_disk_is_a_sentence(run, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    code, _, err = run("lab", "scale", *QUICK, "--png", tmp_path / "a.png")
    assert code == 2 and "could not be written" in err
    assert not list(tmp_path.iterdir())


def _hear_interruptions() -> None:
    """What runs the tests in the background may have told its children not to."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interruption_ends_without_a_word_and_without_a_file(tmp_path):
    ours, theirs = pty.openpty()
    environ = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "COLUMNS": "80"}
    words = [sys.executable, "-m", "glassformer", "lab", "warmup", "--png", str(tmp_path / "a.png")]
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environ,
        start_new_session=True,
        preexec_fn=_hear_interruptions,  # noqa: PLW1509  (no thread has begun there)
    ) as process:
        shown = b""
        end = time.monotonic() + 60
        while b"measuring" not in shown and time.monotonic() < end:
            shown += os.read(ours, 1024)  # until the bar is there
        process.send_signal(signal.SIGINT)
        try:
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    os.close(theirs)
    os.close(ours)
    assert process.returncode == 130
    assert out == b"" and not list(tmp_path.iterdir())
