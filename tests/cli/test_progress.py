"""Progress: on a terminal's standard error while something runs, and nowhere else."""

import json
import os
import re
import threading

import pytest

import glassformer as gf
from glassformer.cli.progress import progress_bar
from letter_models import letter_model

pty = pytest.importorskip("pty")
TEXTS = ["hello there", "abc", "who are you", "good day"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    gf.save(letter_model("encoder_decoder"), root / "both")
    (root / "a.txt").write_text("\n".join(TEXTS) + "\n")
    return root


@pytest.fixture
def on_terminal(run, monkeypatch):
    """Run a command with a terminal as standard error: exit code, output, what the terminal got."""

    def run_words(*words):
        master, slave = pty.openpty()
        seen = bytearray()

        def read() -> None:
            while True:
                try:
                    part = os.read(master, 65_536)
                except OSError:  # the other end is closed
                    return
                if not part:
                    return
                seen.extend(part)

        reader = threading.Thread(target=read)
        reader.start()
        with monkeypatch.context() as patch, os.fdopen(slave, "w") as stream:
            patch.setenv("TERM", "xterm")
            patch.setattr("sys.stderr", stream)
            code, out, _ = run(*words)
        reader.join()
        os.close(master)
        return code, out, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())

    return run_words


def test_translate_counts_texts(on_terminal, run, folder):
    words = ("translate", *TEXTS, "-m", folder / "both", "--max-new", "9")
    code, out, seen = on_terminal(*words)
    assert code == 0 and "translating" in seen and f"{len(TEXTS)}/{len(TEXTS)}" in seen
    assert run(*words) == (0, out, "")
    assert out.count("\n") == len(TEXTS)


def test_one_text_needs_no_bar(on_terminal, folder):
    code, out, seen = on_terminal("translate", "abc", "-m", folder / "both", "--max-new", "9")
    assert code == 0 and out and "translating" not in seen


def test_evaluate_shows_the_share(on_terminal, run, folder):
    pytest.importorskip("sacrebleu")
    files = ("--source", folder / "a.txt", "--target", folder / "a.txt")
    words = ("evaluate", *files, "-m", folder / "both", "--beams", "2", "--json")
    code, out, seen = on_terminal(*words)
    assert code == 0 and json.loads(out)["texts"] == len(TEXTS)
    assert "translating" in seen and "100 %" in seen
    assert run(*words) == (0, out, "")


def test_look_counts_layers(on_terminal, run):
    words = ("look", "the cat sat on the mat", "--json")
    code, out, seen = on_terminal(*words)
    assert code == 0 and "running the model on 22 characters" in seen and "100 %" in seen
    assert "drawing" in seen
    assert run(*words) == (0, out, "")


def test_in_chinese(on_terminal, folder):
    seen = on_terminal("translate", *TEXTS, "-m", folder / "both", "--max-new", "9", "--lang", "zh")
    assert "翻译中" in seen[2]


def test_nothing_without_a_terminal(capsys):
    with progress_bar("x", total=3, is_counted=True) as show:
        show(2)
    assert capsys.readouterr() == ("", "")
