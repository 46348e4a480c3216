"""Any text at all: of every script, with what would steer a terminal, and far too long."""

import io
import json
import re
import sys

import pytest
import torch
from rich.cells import cell_len
from safetensors.torch import save_file

import glassformer as gf
from glassformer.tracing import Run, Trace, TracedText, record
from letter_models import letter_model

TOKENS = [
    "我们",
    "e\u0301te\u0301",
    "👨\u200d👩\u200d👧",
    "👋🏽",
    "❤\ufe0f",
    "עברית",
    "العربية",
    "\x1b[31mred",
    "\x1b]0;title\x07",
    "\x9b2J",
    "\u202eturned",
    "\u0301",
]
ODD_SITE = "decoder.0.\x1b[2Jself"


def trace_of(tokens: list[str], *, name: str = "decoder.0.self") -> Trace:
    q, k, v = torch.randn(3, 1, 2, len(tokens), 4).unbind(0)
    site = record(q, k, v, mask=gf.Causal(), name=name)
    words = TracedText(torch.arange(len(tokens))[None], [tokens])
    return Trace([Run({name: site}, {"tokens": words}, {"decoder.1.self": "\x1b[5m"})])


def is_calm(text: str) -> bool:
    """Nothing but printable characters, line ends, and our own marks of direction."""
    return all(c.isprintable() or c in "\n\u200e" for c in text)


@pytest.mark.parametrize("name", ["decoder.0.self", ODD_SITE])
@pytest.mark.parametrize("words", [(), ("--word", "5"), ("--json",), ("--lang", "zh")])
def test_look_shows_any_token_and_stays_calm(run, tmp_path, words, name):
    trace_of(TOKENS, name=name).save(tmp_path / "a.trace")
    code, out, err = run("look", "--trace", tmp_path / "a.trace", *words)
    assert (code, err) == (0, "")
    assert is_calm(out)
    if words == ("--json",):
        assert json.loads(out)["queries"] == TOKENS and json.loads(out)["site"] == name
        return
    assert max(map(cell_len, out.splitlines())) <= 80
    marks = [line for line in out.splitlines() if re.search(r"[░▒▓█·] *$", line)]
    assert words == ("--word", "5") or len(marks) > len(TOKENS)


def test_rows_stay_in_line(run, tmp_path):
    trace_of(TOKENS).save(tmp_path / "a.trace")
    out = run("look", "--trace", tmp_path / "a.trace")[1]
    lines = out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("我们 "))
    rows = lines[start : start + len(TOKENS)]
    begins = [cell_len(re.split("[░▒▓█]", row)[0]) for row in rows]
    assert set(begins) == {begins[0]}
    assert {cell_len(row.rstrip()) for row in rows[:-1]} == {begins[0] + 3 * (len(TOKENS) - 1) + 1}


def test_steps_and_compare_stay_calm(run, tmp_path):
    for name in "ab":
        trace_of(TOKENS, name=ODD_SITE).save(tmp_path / f"{name}.trace")
    code, out, _ = run("steps", "--trace", tmp_path / "a.trace", "--word", "7")
    assert code == 0 and is_calm(out) and "\\x1b[31mred" in out
    code, out, _ = run("compare", tmp_path / "a.trace", tmp_path / "b.trace")
    assert code == 0 and is_calm(out)


@pytest.mark.plain
def test_complaints_stay_calm(run, tmp_path):
    trace_of(TOKENS, name=ODD_SITE).save(tmp_path / "a.trace")
    for words in (("--word", "\x1b[31m"), ("--site", "decoder.1.self"), ("--site", "\x9bx")):
        code, out, err = run("look", "--trace", tmp_path / "a.trace", *words)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1 and is_calm(err)
    code, _, err = run("look", "--trace", tmp_path / "\x1b[31m.trace")
    assert code == 2 and "\\x1b[31m.trace is not there" in err and is_calm(err)


@pytest.mark.plain
@pytest.mark.parametrize("command", ["look", "steps"])
def test_traces_that_cannot_be_read(run, tmp_path, command):
    path = tmp_path / "a.trace"
    trace_of(["a", "b"]).save(path)
    content = path.read_bytes()
    header = json.dumps({"version": 99, "runs": []})
    for damage, sentence in (
        (lambda: path.write_bytes(content[: len(content) // 2]), "is damaged, or was not written"),
        (lambda: path.write_bytes(b""), "is damaged, or was not written"),
        (lambda: path.write_text("hello"), "is damaged, or was not written"),
        (lambda: save_file({}, path, metadata={"glassformer.trace": header}), "of version 99"),
        (lambda: save_file({}, path), "must be a trace of glassformer"),
        (lambda: [path.unlink(), Trace().save(path)], "nothing has passed through the model yet"),
    ):
        damage()
        code, out, err = run(command, "--trace", path)
        assert (code, out) == (2, "")
        assert sentence in err and err.count("\n") == 1
    code, _, err = run("look", "--trace", tmp_path)
    assert code == 2 and "must be a file" in err


@pytest.mark.plain
@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
@pytest.mark.parametrize("command", ["look", "steps"])
def test_ten_megabytes_are_refused_in_a_sentence(run, tmp_path, monkeypatch, command, family):
    model = letter_model(family)
    gf.save(model, tmp_path / "model")
    text = "ab cd " * (10_000_000 // 6)
    read = []
    encode = type(model.tokenizer).encode
    monkeypatch.setattr(
        type(model.tokenizer),
        "encode",
        lambda self, text, **options: read.append(len(text)) or encode(self, text, **options),
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    code, out, err = run(command, "-m", tmp_path / "model")
    assert (code, out) == (2, "")
    assert "must have at most 4,096 tokens with this model; got more than" in err
    assert sum(read) < 200_000  # what is too long is not read to its end


def test_a_token_of_ten_megabytes_is_shown_by_its_beginning(run, tmp_path):
    trace_of(["a", "我" * 3_400_000, "\x1b" * 10_000_000]).save(tmp_path / "a.trace")
    words = ("look", "--trace", tmp_path / "a.trace", "--html", tmp_path / "a.html")
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert is_calm(out) and "我我我" in out and "…" in out
    assert (tmp_path / "a.html").stat().st_size < 1_000_000


@pytest.mark.plain
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("look", "--trace", "~nosuchuser/a"), "home folder of a user who does not exist"),
        (("generate", "a", "--model", "~nosuchuser/a"), "home folder of a user who does not exist"),
        (("generate", "a", "--model", "x" * 5000), "cannot be a path: File name too long"),
        (("shapes", "x" * 5000), "cannot be a path: File name too long"),
        (("look", "--trace", "x" * 5000), "File name too long"),
        (("train", "~nosuchuser/r.toml"), "home folder of a user who does not exist"),
        (("train", "x" * 5000), "cannot be a path: File name too long"),
        (("train", "--text", "x" * 5000, "--out", "run"), "File name too long"),
    ],
)
def test_paths_that_nobody_has(run, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert sentence in err and err.count("\n") == 1


@pytest.mark.plain
@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ("ein Wort".encode("utf-16"), "The text that is piped in must be UTF-8 text; it is UTF-16"),
        (b"caf\xe9", "The text that is piped in must be UTF-8; byte 3 is not"),
    ],
)
def test_what_is_piped_in_must_be_text(run, tmp_path, monkeypatch, raw, sentence):
    gf.save(letter_model("decoder"), tmp_path / "model")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    code, out, err = run("look", "-m", tmp_path / "model")
    assert (code, out) == (2, "")
    assert sentence in err and err.count("\n") == 1
