"""Learn in a browser, in both languages: read, measure, solve, answer, reload."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from glassformer.generation import Sampling, adjust
from glassformer.languages import CODES, Language
from glassformer.render.numbers import format_numbers, format_weights
from glassformer.school.lab import ExperimentTexts
from glassformer.school.learn import chapter_names, read_chapter
from glassformer.school.learn.blocks import plain_text
from glassformer.school.learn.merges import format_piece
from glassformer.school.learn.pictures import draw
from glassformer.school.practice import find_exercise
from workbench.browsing import listen
from workbench.served import TOKEN, Server, serving

pytestmark = pytest.mark.browser
SCORES = find_exercise("dot_product_scores")
WRONG = (
    "def scores(q, k):\n    turned = k.permute(*reversed(range(k.dim())))\n    return q @ turned\n"
)
LONG = 60_000  # milliseconds


@pytest.fixture(scope="module", params=CODES)
def code(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def learner(code: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server whose workers work in an empty folder, for an empty record."""
    home, before = tmp_path_factory.mktemp(code), Path.cwd()
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_DATA_HOME", str(home / "data"))
    os.chdir(home)
    try:
        with serving("glassformer.workbench.desk", size=2) as server:
            yield server, home
    finally:
        os.chdir(before)
        patch.undo()


@pytest.fixture(scope="module")
def page(chromium: Any, code: str, learner: tuple[Server, Path]) -> Iterator[Any]:
    """One page for all tests; whatever it complains of, and whom else it asks, fails them."""
    server, _ = learner
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    faults = listen(page, server)
    page.goto(f"http://{server.host}/#token={TOKEN}&room=learn&lang={code}")
    page.wait_for_selector(".chapters", timeout=LONG)
    yield page
    page.close()
    assert faults == []


def go(page: Any, part: str) -> None:
    page.evaluate(
        """part => { const parts = new URLSearchParams(location.hash.slice(1));
        parts.delete('learn.open'); if (part) parts.set('learn.open', part);
        location.hash = parts.toString(); }""",
        part,
    )


def test_the_map_begins_with_the_first_chapter_and_back_returns(page: Any, code: str) -> None:
    assert page.locator(".chapters > li").count() == len(chapter_names())
    page.click(".start .main")
    title = plain_text(read_chapter("why", Language(code)).title)
    page.wait_for_selector("article h1", timeout=LONG)
    assert title in page.inner_text("article h1")
    page.go_back()
    page.wait_for_selector(".chapters")


def test_the_five_steps_are_the_library_s_and_can_be_changed(page: Any, code: str) -> None:
    go(page, "chapter:weights")
    page.wait_for_selector("figure input[type=number]", timeout=LONG)
    row = draw("cat", Language(code)).row
    cells = page.locator("figure tbody tr td.weight")
    assert cells.all_inner_texts() == format_weights(row.weights.tolist())
    assert page.inner_text("figure .sum") == f"[{', '.join(format_numbers(row.out.tolist()))}]"
    page.locator("figure input[type=number]").first.fill("30.8")
    halves = page.locator("figure tbody tr td.weight").all_inner_texts()
    assert halves[0] == halves[1] != format_weights(row.weights.tolist())[1]
    page.click("figure .note button")
    assert cells.all_inner_texts() == format_weights(row.weights.tolist())
    assert page.locator("math").count() > 3


def test_merges_are_the_library_s_and_follow_another_text(page: Any, code: str) -> None:
    go(page, "chapter:tokenization")
    page.wait_for_selector("figure textarea", timeout=LONG)
    picture = draw("merges", Language(code))
    pieces = page.locator("figure .piece")
    assert pieces.all_inner_texts() == [format_piece(piece) for piece in picture.pieces]
    page.locator("figure textarea").fill("猫 猫")
    assert pieces.all_inner_texts() == ["猫", "␣", "猫"]
    page.locator("figure input[type=range]").fill("0")
    assert pieces.all_inner_texts() == ["E7", "8C", "AB", "␣", "E7", "8C", "AB"]
    page.click("figure .note button")
    assert pieces.count() == len(picture.pieces)


def test_a_flow_is_walked_through_and_plays(page: Any, code: str) -> None:
    go(page, "chapter:projections")
    page.wait_for_selector("figure ol.flow", timeout=LONG)
    stages = draw("single-head", Language(code)).stages
    shapes = [" × ".join(map(str, stage.shape)) for stage in stages]
    figure = page.locator("figure").filter(has=page.locator("ol.flow")).first
    drawn = figure.locator(".tensor").all_inner_texts()
    assert [text.rpartition(") ")[2] for text in drawn] == shapes
    here = figure.locator("[aria-current=step]")
    assert here.count() == 0

    def press(key: str) -> str:
        figure.get_by_role("button", name=Language(code).say(key), exact=True).click()
        return here.inner_text()

    assert press("bench.steps.previous").endswith(shapes[-2])
    assert press("bench.steps.next").endswith(shapes[-1])
    assert press("bench.steps.play").endswith(shapes[0])
    page.wait_for_selector("figure ol.flow > li:nth-child(2)[aria-current=step]", timeout=LONG)
    press("bench.steps.pause")


def test_an_album_shows_the_picture_that_is_chosen(page: Any, code: str) -> None:
    go(page, "chapter:embeddings")
    page.wait_for_selector("figure select", timeout=LONG)
    album = draw("neighbours", Language(code))
    for n in (0, 2):
        page.select_option("figure select", str(n))
        shown = page.locator("figure .bars th").all_inner_texts()
        bars = album.pictures[n][1].pictures
        assert shown == [name for each in bars for name, _, _ in each.bars]


def test_a_timeline_leads_to_its_works_and_chapters(page: Any, code: str) -> None:
    go(page, "chapter:history")
    page.wait_for_selector("figure time", timeout=LONG)
    timeline = draw("history", Language(code)).pictures[1][1]
    page.select_option("figure select", "1")
    years = page.locator("figure time").all_inner_texts()
    assert years == [str(event.year) for event in timeline.events]
    link = page.locator("figure li a").first
    assert link.get_attribute("href") == timeline.events[0].address
    page.locator("figure li button").last.click()
    title = timeline.events[-1].title.partition(". ")[2]
    page.wait_for_selector(f"h1:has-text('{title}'), h2:has-text('{title}')", timeout=LONG)


def test_choices_follow_their_settings(page: Any, code: str) -> None:
    go(page, "chapter:sampling")
    page.wait_for_selector("figure output", timeout=LONG)
    cells = page.locator("figure tbody td")

    def read() -> list[str]:
        return [text.strip() for text in cells.all_inner_texts()]  # numbers are aligned by spaces

    logits = torch.tensor([draw("choices", Language(code)).logits])
    for slider, value, sampling in (
        (0, "0.5", Sampling(temperature=0.5)),
        (1, "3", Sampling(temperature=0.5, top_k=3)),
    ):
        page.locator("figure input[type=range]").nth(slider).fill(value)
        expected = adjust(logits, sampling).softmax(-1)[0].tolist()
        assert read() == format_weights(expected)
    page.click("figure .note button")
    assert read() == format_weights(logits.softmax(-1)[0].tolist())
    go(page, "chapter:weights")
    page.wait_for_selector("figure input[type=number]", timeout=LONG)


def test_a_chapter_is_read_at_its_end_and_stays_so(page: Any, code: str) -> None:
    page.locator("article footer").scroll_into_view_if_needed()
    page.wait_for_selector("article footer p.quiet")
    page.reload()
    page.wait_for_selector("article h1", timeout=LONG)
    go(page, "")
    page.wait_for_selector(".chapters > li.started")
    said = Language(code).say("bench.learn.state.started")
    assert said in page.inner_text(".chapters > li:nth-child(2)")


def test_an_experiment_runs_in_its_chapter_and_on_its_own(page: Any, code: str) -> None:
    go(page, "lab:scale")
    page.wait_for_selector(".experiment form", timeout=LONG)
    failed: list[str] = []
    page.on("requestfailed", lambda asked: failed.append(asked.url))
    page.click(".experiment form .main")
    page.wait_for_selector(".verdict", timeout=LONG)
    page.wait_for_function("document.querySelector('progress') === null")
    assert failed == []  # a stream that was read to its end is not an aborted one
    texts = ExperimentTexts("scale", Language(code))
    assert Language(code).say("lab.holds") in page.inner_text(".verdict")
    assert page.locator(".panels .title").all_inner_texts() == [
        texts(name) for name in ("variance", "largest", "gradient")
    ]
    picture = page.locator(".panels svg.picture").first
    picture.focus()
    picture.press("ArrowRight")
    assert texts("scaled") in page.locator(".readout").first.inner_text()
    other = "zh" if code == "en" else "en"
    page.select_option("header .switches select >> nth=1", other)
    title = ExperimentTexts("scale", Language(other))("variance")
    page.wait_for_function(
        "t => document.querySelector('.panels .title').textContent === t", arg=title
    )
    page.select_option("header .switches select >> nth=1", code)
    go(page, "chapter:scale")
    page.wait_for_selector("article .experiment form .main", timeout=LONG)
    page.locator("article .experiment form .main").first.click()
    page.wait_for_selector("article .verdict", timeout=LONG)


def test_a_long_run_is_drawn_as_it_runs_and_can_be_cancelled(page: Any, code: str) -> None:
    go(page, "lab:warmup")
    page.wait_for_selector(".experiment form select", timeout=LONG)
    page.select_option(".experiment form select", "full")
    page.click(".experiment form .main")
    page.wait_for_selector(".experiment progress")
    page.wait_for_selector(".panels[aria-busy=true] svg.picture > path[d*=L]", timeout=LONG)
    assert page.locator(".verdict").count() == 0 and page.locator("progress").count() == 1
    texts = ExperimentTexts("warmup", Language(code))
    table = page.locator(".panels table")
    table.locator("xpath=ancestor::details").locator("summary").click()
    assert texts("post_cold") in table.inner_text()
    measured = table.locator("tbody tr:first-child td").all_inner_texts()
    assert float(measured[0]) > 1 and measured[-1] == "–"  # the last case comes last
    page.click(".experiment form .plain")
    page.wait_for_selector(".experiment progress", state="detached")
    assert page.locator(".panels").count() == 0


def test_a_wrong_exercise_has_its_mistake_at_its_line(
    page: Any, code: str, learner: tuple[Server, Path]
) -> None:
    go(page, f"exercise:{SCORES.name}")
    page.wait_for_selector("#code", timeout=LONG)
    assert "def scores" in page.input_value("#code")
    page.fill("#code", WRONG)
    page.click(".work .main")
    page.wait_for_selector(".mistake", timeout=LONG)
    fault = next(each for each in SCORES.faults() if each.name == "all_turned")
    assert page.inner_text(".mistake").strip() == fault.sentence(code)
    assert page.inner_text(".numbers .marked") == "2"
    file = learner[1] / "glassformer-practice" / SCORES.file_name
    assert file.read_text("utf-8") == WRONG
    page.click(".task .buttons button")
    page.wait_for_selector(".hint")
    page.reload()
    page.wait_for_selector("#code", timeout=LONG)
    assert page.input_value("#code") == WRONG and page.locator(".hint").count() == 1


def test_the_editor_indents_and_can_be_left(page: Any) -> None:
    page.fill("#code", "def f():")
    page.press("#code", "End")
    page.press("#code", "Enter")
    page.keyboard.type("x")
    page.press("#code", "Enter")
    page.press("#code", "Tab")
    assert page.input_value("#code") == "def f():\n    x\n        "
    page.press("#code", "Shift+Tab")
    assert page.input_value("#code") == "def f():\n    x\n    "
    page.press("#code", "Escape")
    page.press("#code", "Tab")
    assert page.evaluate("document.activeElement.id") != "code"


def test_what_is_typed_outlives_a_reload_at_once(page: Any) -> None:
    page.fill("#code", "# <img src=x onerror=alert(1)>\n")
    page.reload()
    page.wait_for_selector("#code", timeout=LONG)
    assert page.input_value("#code") == "# <img src=x onerror=alert(1)>\n"
    assert page.locator("main img").count() == 0


def test_a_right_exercise_passes_and_is_on_the_map(page: Any, code: str) -> None:
    page.fill("#code", SCORES.solution)
    page.press("#code", "Control+Enter")
    page.wait_for_selector(".card.isPassed", timeout=LONG)
    assert page.locator(".numbers .marked").count() == 0
    go(page, "")
    page.wait_for_selector(".chip.isPassed")
    page.reload()
    page.wait_for_selector(".chip.isPassed", timeout=LONG)
    title = SCORES.brief(code).title
    assert title in page.inner_text(".chip.isPassed")


def test_questions_are_answered_by_keys_and_scheduled(page: Any, code: str) -> None:
    go(page, "questions:scale")
    page.wait_for_selector(".ask", timeout=LONG)
    page.click(".round .main")
    page.wait_for_selector(".grades")
    page.keyboard.press("3")
    page.wait_for_selector("#typed")
    page.fill("#typed", "many")
    page.press("#typed", "Enter")
    page.wait_for_selector(".round .fault")
    page.fill("#typed", "256")
    page.press("#typed", "Enter")
    page.wait_for_selector(".isRight")
    assert page.inner_text(".isRight") == Language(code).say("bench.learn.right")
    page.click(".round .card > .main")
    page.wait_for_selector(".isRight", state="detached")
    page.reload()
    page.wait_for_selector(".ask", timeout=LONG)
    at = Language(code).say("bench.learn.questions.at", n=1, total=3)
    assert at in page.inner_text(".round")


def test_a_place_of_a_chapter_opens_another_room(page: Any) -> None:
    go(page, "chapter:masks")
    page.wait_for_selector("article footer", timeout=LONG)
    page.locator("article .list").last.locator(".entry").click()
    page.wait_for_selector("#site", timeout=LONG)
    assert (page.input_value("#site"), page.input_value("#head")) == ("decoder.2.self", "2")
