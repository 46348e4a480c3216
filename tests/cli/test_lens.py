"""`glassformer lens`: what the model would say after every layer."""

import json
import re
from pathlib import Path

import pytest

HAN = re.compile("[\u4e00-\u9fff]")


def test_a_text_is_read_after_every_layer(run):
    code, out, err = run("lens", "And God said unto", COLUMNS=120)
    assert code == 0 and "Traceback" not in err
    rows = [line.split() for line in out.splitlines() if line.strip().startswith("decoder.")]
    assert [row[0] for row in rows] == [
        *(f"decoder.{i}.mlp" for i in (4, 3, 2, 1, 0)),
        "decoder.start",
    ]
    assert rows[0][-2] == "␣him"
    assert "After ␣unto the model predicts ␣him with" in out


def test_the_last_row_is_what_generating_writes(run):
    _, out, _ = run("lens", "And God said unto", "--json")
    found = json.loads(out)
    words = ("And God said unto", "--model", "writer", "--max-new", "1", "--temperature", "0")
    _, written, _ = run("generate", *words)
    assert written.strip().endswith(found["tokens"][-1][-1][0].strip("␣ "))
    assert found["rank"][-1] == [0] * len(found["positions"])
    assert found["divergence"][-1] == [0.0] * len(found["positions"])
    assert len(found["tokens"][0][0]) == 5


def test_parts_and_chinese(run):
    code, out, _ = run("lens", "The cat sat.", "--to", "fr", "--parts", "--lang", "zh")
    assert code == 0 and "decoder.2.cross" in out
    assert "排在第一位" in out and HAN.search(out)


def test_an_encoder_predicts_at_a_position(run):
    code, out, _ = run("lens", "The cat sat.", "--model", "reader")
    assert code == 0 and "At [SEP] the model predicts" in out


def test_a_narrow_window_shows_the_last_positions(run):
    code, out, _ = run("lens", "And God said unto Moses, Go down, for thy people", COLUMNS=50)
    assert code == 0 and re.search(r"The last \d+ of \d+ positions are shown", out)
    assert max(map(len, out.splitlines())) <= 50


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lens", "a", "--top", "0"), "--top must be 1 … 100 tokens; got --top 0"),
        (("lens", ""), "at least one token"),
        (("lens", "a", "-m", "nowhere"), "nowhere"),
    ],
)
def test_mistakes_are_one_line(run, words, said):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert said in err and err.count("\n") == 1


def test_an_empty_text_is_refused_in_the_readers_language(run):
    code, out, err = run("lens", "", "--lang", "zh")
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "空文本" in err and "token" not in err


def write_text(folder: Path) -> Path:
    words = ["And", "God", "said", "unto", "Moses", ",", "Go", "down", "for", "thy", "people", "."]
    shuffled = [words[(i * i + 3 * i) % len(words)] for i in range(700)]
    path = folder / "book.txt"
    path.write_text("\n".join(" ".join(shuffled[i : i + 10]) for i in range(0, 700, 10)))
    return path


@pytest.mark.parametrize("kind", ["tuned", "jacobian"])
def test_a_lens_is_made_and_looked_through(run, tmp_path: Path, kind: str, monkeypatch):
    monkeypatch.setattr("glassformer.cli.lens._MOST_CHARACTERS", {"tuned": 9000, "jacobian": 300})
    file = tmp_path / "book.lens"
    made = ("lens", "--train", write_text(tmp_path), "--out", file, "--kind", kind, "--steps", "1")
    code, out, err = run(*made)
    assert code == 0 and "Traceback" not in err
    assert "decoder.3.mlp" in out and f"{kind} lens" in out.lower()
    assert f"glassformer lens --lens {file}" in "".join(out.splitlines())
    assert ("characters" in err) == (kind == "jacobian")
    code, out, _ = run("lens", "And God said unto", "--lens", file, "--json")
    found = json.loads(out)
    assert code == 0 and found["borders"] == [
        "decoder.start",
        *(f"decoder.{i}.mlp" for i in range(5)),
    ]
    _, plain, _ = run("lens", "And God said unto", "--json")
    assert found["tokens"][-1] == json.loads(plain)["tokens"][-1]
    code, out, _ = run("lens", "And God said unto", "--lens", file, "--lang", "zh")
    assert code == 0 and {"tuned": "调谐透镜", "jacobian": "雅可比透镜"}[kind] in out
    code, out, err = run("lens", "The cat", "--lens", file, "--model", "reader")
    assert code == 2 and "This lens was made for the stream of 'decoder'" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--train", "book.txt"), "needs both --train and --out; only one was given"),
        (("--out", "a.lens"), "needs both --train and --out; only one was given"),
        (("a", "--train", "book.txt", "--out", "a.lens"), "--train makes a lens"),
        (
            ("--train", "book.txt", "--out", "a.lens", "--kind", "magic"),
            "--kind must be one of tuned, jacobian; got 'magic'",
        ),
        (("--train", "book.txt", "--out", "a.lens", "--steps", "-1"), "at least 0; got --steps -1"),
        (("--train", "none.txt", "--out", "a.lens"), "none.txt"),
        (("--train", "book.txt", "--out", "book.txt"), "exists already and is not a lens"),
        (("--train", "book.txt", "--out", "no/a.lens"), "The folder no does not exist"),
        (("--train", "few.txt", "--out", "a.lens"), "needs at least three windows of text"),
        (("--train", "book.txt", "--out", "a.lens", "-m", "translator"), "reads pairs of texts"),
        (("a", "--lens", "none.lens"), "none.lens is not there"),
        (("a", "--lens", "book.txt"), "is not a lens, or was not written to its end"),
    ],
)
def test_mistakes_in_making_a_lens_are_one_line(run, tmp_path: Path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    before = write_text(tmp_path).read_text()
    Path("few.txt").write_text("And God said.")
    code, out, err = run("lens", *words)
    assert (code, out) == (2, "")
    assert said in err and err.count("\n") == 1
    assert Path("book.txt").read_text() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["book.txt", "few.txt"]


def test_figures_and_a_page_are_written_beside_the_table(run, tmp_path):
    pytest.importorskip("matplotlib")
    files = [tmp_path / f"a.{suffix}" for suffix in ("png", "svg", "pdf", "html")]
    words = [word for file in files for word in (f"--{file.suffix[1:]}", file)]
    code, out, err = run("lens", "And God said unto", *words)
    assert (code, err) == (0, "") and "decoder.start" in out
    png, svg, pdf, html = files
    assert png.read_bytes()[:4] == b"\x89PNG" and pdf.read_bytes()[:4] == b"%PDF"
    assert ">␣him<" in svg.read_text("utf-8") and ">decoder.4.mlp<" in svg.read_text("utf-8")
    assert '"kind":"chart"' in html.read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--png", "a.svg"), "must end in .png"),
        (("--html", "nowhere/a.html"), "nowhere"),
    ],
)
def test_files_that_cannot_be_written_are_refused_first(run, words, said):
    code, out, err = run("lens", "And", *words)
    assert code == 2 and out == "" and said in err
