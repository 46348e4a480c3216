"""Exports in a browser: each room's view as files that other programs read, with its numbers."""

import csv
import io
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms import flow, touch, writing
from glassformer.workbench.wire.flow import AttributeRequest
from glassformer.workbench.wire.requests import ReadingRequest
from glassformer.workbench.wire.touch import ChangeRequest
from glassformer.workbench.wire.writing import WriteRequest
from training.small_runs import language, run
from workbench.served import TOKEN, Server, serving

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser

TEXT = "Mrs. Weston smiled, and"
WRITER: dict[str, Any] = {"model": "writer", "text": TEXT}
CELL: dict[str, Any] = {"site": "decoder.1.self", "head": 2, "query": 5, "key": 2}
CHANGE = "ablate(decoder.0.mlp)"
PLACE = f"model=writer&sentence={quote(TEXT)}&" + "&".join(f"{n}={v}" for n, v in CELL.items())
TAGS = "svg g rect circle line polyline path text tspan image title"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    there = tmp_path_factory.mktemp("runs")
    snapshots = {"every": 10, "text": "abcabc"}
    settings = {"until": {"steps": 20}, "show": {"every": 5}, "snapshots": snapshots}
    run(language(there, **settings), there / "alphabet")
    return there / "alphabet"


@pytest.fixture(scope="module")
def server(trained: Path) -> Iterator[Server]:
    with serving("glassformer.workbench.desk", trained, size=1) as found:
        yield found


@pytest.fixture
def open_export(server: Server, chromium: Any) -> Iterator[Any]:
    """Opens a room in the dark scheme, then its dialog."""
    faults: list[str] = []
    context = chromium.new_context(viewport={"width": 1280, "height": 720}, accept_downloads=True)

    def open_at(asked: str, until: str) -> Any:
        page = context.new_page()
        page.set_default_timeout(90_000)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"http://{server.host}/#token={TOKEN}&lang=en&theme=dark&{asked}")
        if "learn.open=lab" in asked:
            page.locator("button.main").click()
        page.locator(until).first.wait_for()
        page.locator(".switches button:enabled", has_text="Export").click()
        return page

    yield open_at
    context.close()
    assert not faults


def save(page: Any, button: str) -> bytes:
    with page.expect_download() as saved:
        page.locator(button).click()
    return Path(saved.value.path()).read_bytes()


def read_table(page: Any, name: str) -> list[dict[str, str]]:
    text = save(page, f"[data-table='{name}']").decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def read_drawing(page: Any) -> tuple[str, tuple[int, int]]:
    """All texts of the SVG, and its size; the PNG is twice as large, and the scheme is light."""
    from PIL import Image  # a part of matplotlib's own requirements

    root = ElementTree.fromstring(save(page, "[data-format=svg]"))
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= set(TAGS.split())
    assert not any("style" in each.attrib or "class" in each.attrib for each in root.iter())
    paper = root.find(f"{SVG}rect")
    assert paper is not None and paper.get("fill") == "#ffffff"
    size = int(root.attrib["width"]), int(root.attrib["height"])
    picture = Image.open(io.BytesIO(save(page, "[data-format=png]")))
    assert picture.size == (2 * size[0], 2 * size[1])
    assert picture.convert("RGB").getpixel((4, 4)) == (255, 255, 255)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    texts = [each.text or "" for each in root.iter(f"{SVG}text")]
    return "\n".join(texts), size


def formats_of(page: Any) -> set[str]:
    names = (each.get_attribute("data-format") for each in page.locator("[data-format]").all())
    return set(filter(None, names))


def silent(_: float) -> None:
    pass


def test_touch(open_export: Any) -> None:
    page = open_export(f"room=touch&{PLACE}&change={quote(CHANGE)}", ".effect .along button")
    assert formats_of(page) == {"python", "png", "svg", "pdf", "trace"}
    asked = ChangeRequest(**WRITER, **CELL, change=CHANGE)
    found = touch.compare_runs(asked, Memory(), silent)
    rows = read_table(page, "weights")
    assert len(rows) == len(found["head"]["rows"]) * len(found["head"]["keys"])
    for row in rows:
        q, k = int(row["query"]), int(row["key"])
        assert float(row["after"]) == pytest.approx(found["head"]["after"][q][k], abs=1e-6)
    shifts = read_table(page, "predictions")
    expected = [each["before"] for each in found["tokens"]]
    assert [float(row["before"]) for row in shifts] == pytest.approx(expected, abs=1e-6)
    texts, _ = read_drawing(page)
    assert CHANGE in texts and f"{found['head']['before'][5][2]:.4f}" in texts
    page.locator("[data-format=python]").click()
    assert "gf.change(model, changes" in page.locator("dialog pre").inner_text()


def test_flow_and_its_page_on_paper(open_export: Any, tmp_path: Path) -> None:
    page = open_export(f"room=flow&{PLACE}", "#reasons-panel table")
    assert {row["border"] for row in read_table(page, "stream")} >= {"decoder.start"}
    shares = read_table(page, "contributions")
    asked = AttributeRequest(**WRITER, site=CELL["site"], query=CELL["query"])
    found = flow.attribute_token(asked, Memory(), silent)
    expected = {each["name"]: each["value"] for each in found["shares"]}
    given = {row["name"]: float(row["contribution"]) for row in shares[:-2]}
    assert given == pytest.approx(expected, abs=1e-4)
    texts, (width, height) = read_drawing(page)
    assert "decoder.1.self" in texts
    page.evaluate("window.print = () => {}")  # which would wait for a person
    page.locator("[data-format=pdf]").click()
    page.locator(".printed > svg").wait_for(state="attached")
    paper = page.pdf(path=tmp_path / "flow.pdf", prefer_css_page_size=True)
    assert paper.count(b"/Type /Page\n") == 1 and b"/Font" in paper
    box = next(line for line in paper.splitlines() if b"/MediaBox" in line)
    sides = [float(each) for each in box.split(b"[")[1].split(b"]")[0].split()[2:]]
    assert sides == pytest.approx([0.75 * width, 0.75 * height], abs=2)
    assert page.locator(".printed").count() == 0


def test_writing(open_export: Any) -> None:
    asked = {"temperature": 0.5, "seed": 2, "max_new_tokens": 6}
    options = "&".join(f"writing.{name}={value}" for name, value in asked.items())
    page = open_export(f"room=writing&{PLACE}&{options}", "#choices")
    assert formats_of(page) == {"python", "png", "svg", "pdf"}  # the run is not the written text
    found = writing.write_text(WriteRequest(**WRITER, **asked), Memory(), silent)
    rows = [row for row in read_table(page, "choices") if row["is written"] == "1"]
    chosen = [step["chosen"]["after"] for step in found["steps"]]
    assert [float(row["after"]) for row in rows] == pytest.approx(chosen, abs=1e-5)
    texts, _ = read_drawing(page)
    assert "Settings" in texts and "0.5" in texts.splitlines()


def test_atlas(open_export: Any) -> None:
    page = open_export(f"room=atlas&{PLACE}", "#survey:not(:has(progress)):has-text('×')")
    assert formats_of(page) == {"python", "png", "svg", "pdf", "html", "trace"}
    trace = Memory().glance(ReadingRequest(**WRITER), silent).trace
    weights = trace[CELL["site"]].weights(head=CELL["head"])
    rows = read_table(page, "weights")
    assert len(rows) == len(weights)
    for n, row in enumerate(rows):
        cells = list(row.values())[1:]
        assert row["query"].startswith(f"{n} ") and all(cells[: n + 1]) and not any(cells[n + 1 :])
        given = [float(each) for each in cells[: n + 1]]
        assert given == pytest.approx(weights[n, : n + 1].tolist(), abs=1e-6)
    texts, _ = read_drawing(page)
    assert "␣Weston" in texts.splitlines()
    page.locator("[data-format=python]").click()
    names: dict[str, Any] = {}
    exec(compile(page.locator("dialog pre").inner_text(), "exported", "exec"), names)
    assert (names["values"] - weights).abs().max() < 1e-6


def read_lines(page: Any) -> dict[str, Any]:
    """What the names of the program hold, run as a reader would paste it."""
    page.locator("[data-format=python]").click()
    names: dict[str, Any] = {}
    exec(compile(page.locator("dialog pre").inner_text(), "exported", "exec"), names)
    return names


def test_steps_and_shapes(open_export: Any) -> None:
    page = open_export(f"room=steps&{PLACE}&steps.at=weights", "#step table")
    assert formats_of(page) == {"python", "png", "svg", "pdf", "html", "trace"}
    trace = Memory().glance(ReadingRequest(**WRITER), silent).trace
    row = trace[CELL["site"]].row(CELL["head"], CELL["query"])
    rows = [each for each in read_table(page, "steps") if each["step"] == "weights"]
    assert [float(each["value"]) for each in rows] == pytest.approx(row.weights.tolist(), abs=1e-6)
    texts, _ = read_drawing(page)
    assert "␣Weston" in texts
    page = open_export(f"room=shapes&{PLACE}", "#shapes .letters")
    assert formats_of(page) == {"python", "png", "svg", "pdf"}  # an architecture has no trace
    whole = read_table(page, "shapes")[0]
    total = read_lines(page)["total"]
    assert int(whole["parameters"]) == total.parameters and int(whole["FLOPs"]) == total.flops
    assert "writer" in read_drawing(page)[0]


def test_training_and_an_experiment(open_export: Any, trained: Path) -> None:
    page = open_export("room=training&model=alphabet&training.step=10", "figure svg")
    assert formats_of(page) == {"python", "png", "svg", "pdf"}
    names = read_lines(page)
    logged = [line for line in names["lines"] if "loss" in line]
    curves = [each for each in read_table(page, "curves") if each["loss"]]
    assert [float(each["loss"]) for each in curves] == [line["loss"] for line in logged]
    frame = [each for each in read_table(page, "frame") if each["site"] == "decoder.0.self"]
    assert {each["step"] for each in frame} == {"10"} and Path(names["folder"]) == trained
    weights = [float(each["weight"]) for each in frame]
    assert any(
        weights == pytest.approx(each.flatten().tolist(), abs=1e-6) for each in names["maps"]
    )
    read_drawing(page)
    page = open_export("room=learn&learn.open=lab:scale", ".verdict")
    rows = read_table(page, "1")
    panel = read_lines(page)["panel"]
    assert len(rows) == len(panel["places"]) and read_table(page, "3")[0].keys() == rows[0].keys()
    last = [float(list(each.values())[1]) for each in read_table(page, "3")]
    assert last == pytest.approx(panel["series"][0]["values"], rel=1e-5)
    assert "The claim holds" in read_drawing(page)[0]
