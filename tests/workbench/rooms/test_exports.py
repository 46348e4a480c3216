"""Views as files: each is what the library writes, and the Python lines give the same number."""

import base64
import contextlib
import csv
import io
from typing import Any

import pytest

import glassformer as gf
from glassformer.analysis.traced_text import trace_text
from glassformer.errors import TraceError
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms import exports
from glassformer.workbench.rooms.exports import export_view
from glassformer.workbench.wire.exports import ExportAnswer, ExportRequest

CAT: dict[str, Any] = {"model": "translator", "text": "The cat sat.", "to": "fr"}
HOSTILE = 'A "quote\' \\ """ # {x}\n<script>'


@pytest.fixture(scope="module")
def memory() -> Memory:
    return Memory()


def export(memory: Memory, **asked: Any) -> tuple[str, bytes]:
    found = export_view(ExportRequest(**asked), memory, lambda _: None)
    ExportAnswer.model_validate(found)
    return found["name"], base64.b64decode(found["content"])


@pytest.mark.parametrize(
    ("kind", "start"),
    [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("html", b"<!doctype html>")],
)
def test_figures_and_pages(memory, kind, start):
    name, content = export(memory, **CAT, format=kind, site=8, head=1)
    assert name.endswith(f"-1.{kind}") and content.lower().startswith(start.lower())


def test_the_trace_holds_the_same_run(memory, tmp_path):
    _, content = export(memory, **CAT, format="trace", site=0, head=0)
    (tmp_path / "cat.trace").write_bytes(content)
    saved = gf.Trace.load(tmp_path / "cat.trace")
    trace = trace_text(gf.load("translator"), CAT["text"], to="fr")
    assert saved.names == trace.names and saved.run.streams
    assert (saved[trace.names[3]].weights() - trace[trace.names[3]].weights()).abs().max() < 1e-6


def test_the_table_holds_the_weights(memory):
    name, content = export(memory, **CAT, format="csv", site=1, head=2)
    rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))
    site = list(trace_text(gf.load("translator"), CAT["text"], to="fr"))[1]
    assert name == f"{site.name}-2.csv" and rows[0][:2] == ["query", "0 <fr>"]
    weights = [[float(each) for each in row[1:]] for row in rows[1:]]
    assert weights == [pytest.approx(row, abs=1e-6) for row in site.weights(head=2).tolist()]


@pytest.mark.parametrize(
    "reading",
    [
        CAT,
        {**CAT, "target": "Le chien."},
        {**CAT, "change": "ablate(decoder.0.self, head=1)"},
        {"model": "writer", "text": HOSTILE},
        {"model": "reader", "text": "The king sat upon his [MASK]."},
    ],
)
def test_the_python_lines_give_the_same_number(memory, reading):
    place = {"site": 2, "head": 1, "query": 3, "key": 2}
    name, content = export(memory, **reading, **place, format="python")
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(content, name, "exec"), names)
    site = list(memory.glance(ExportRequest(**reading, **place, format="python"), print).trace)[2]
    assert names["weight"] == pytest.approx(float(site.weights(head=1, rows=[3])[0, 2]), abs=1e-6)
    assert names["site"].name == site.name and len(printed.getvalue().splitlines()) > 3


def test_the_python_lines_of_a_saved_trace(memory, tmp_path):
    trace_text(gf.load("writer"), "And God said").save(tmp_path / "a 'b.trace")
    memory.locate({"a": str(tmp_path / "a 'b.trace")})
    asked = {"model": "a", "text": "", "site": 1, "head": 0, "query": 2, "key": 1}
    _, content = export(memory, **asked, format="python")
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(content, names)
    assert 0 < names["weight"] < 1


def test_what_cannot_be_exported(memory, monkeypatch):
    with pytest.raises(TraceError, match=r"queries 0 … \d+ and keys 0 … \d+; got query=99, key=0"):
        export(memory, **CAT, format="csv", site=0, head=0, query=99)
    with pytest.raises(TraceError, match=r"heads 0 … 3; got head=9"):
        export(memory, **CAT, format="python", site=0, head=9)
    monkeypatch.setattr(exports, "_MOST_BYTES", 100)
    with pytest.raises(TraceError, match="has at most 0 MiB"):
        export(memory, **CAT, format="svg", site=0, head=0)
    with pytest.raises(TraceError, match="has at most 0 MiB"):
        export(memory, **CAT, format="trace", site=0, head=0)
    monkeypatch.setattr(exports, "_MOST_CELLS", 10)
    with pytest.raises(TraceError, match=r"at most 10 weights; this head has \d+"):
        export(memory, **CAT, format="csv", site=0, head=0)
