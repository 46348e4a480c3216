"""Plans and the capstone in a browser, in both languages: choose, follow, reload, join, run."""

import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from glassformer.languages import CODES, Language
from glassformer.school.plans import read_plan
from glassformer.school.practice import find_exercise
from glassformer.school.practice.capstone.parts import TRACKS
from glassformer.school.progress import FILE, ProgressStore
from workbench.browsing import listen
from workbench.served import TOKEN, Server, serving

pytestmark = pytest.mark.browser
SCORES = find_exercise("dot_product_scores")
LONG = 60_000  # milliseconds


@pytest.fixture(scope="module")
def learner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server for a learner who has passed one exercise; and the practice folder."""
    home, before = tmp_path_factory.mktemp("home"), Path.cwd()
    folder = home / "glassformer-practice"
    practice = ProgressStore(folder / FILE)
    practice.mark_passed(SCORES.name, date(2026, 5, 1))
    practice.save()
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_DATA_HOME", str(home / "data"))
    os.chdir(home)
    try:
        with serving("glassformer.workbench.desk", size=2) as server:
            yield server, folder
    finally:
        os.chdir(before)
        patch.undo()


@pytest.fixture(scope="module", params=CODES)
def code(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def page(chromium: Any, code: str, learner: tuple[Server, Path]) -> Iterator[Any]:
    """One page for each language, with a storage of its own."""
    server, _ = learner
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    faults = listen(page, server)
    page.goto(f"http://{server.host}/#token={TOKEN}&room=learn&learn.open=plan&lang={code}")
    yield page
    page.close()
    assert faults == []


def go(page: Any, part: str, **more: str) -> None:
    page.evaluate(
        """change => { const parts = new URLSearchParams(location.hash.slice(1));
        for (const [name, value] of Object.entries(change)) parts.set(name, value);
        location.hash = parts.toString(); }""",
        {"learn.open": part, **more},
    )


def open_plan(page: Any) -> None:
    go(page, "plan", **{"learn.plan": "weekend"})
    page.wait_for_selector(".plan details[open] li", timeout=LONG)


def test_a_plan_is_chosen_by_keys_and_kept(page: Any, code: str) -> None:
    page.wait_for_selector(".plan fieldset", timeout=2 * LONG)
    assert page.locator(".plan li").count() == 0 and page.is_checked("input[value='']")
    page.focus("input[value='']")
    page.keyboard.press("ArrowUp")  # the last plan
    page.wait_for_selector(".plan details[open] li", timeout=LONG)
    assert page.is_checked("input[value=interview]")
    page.check("input[value=weekend]")
    plan = read_plan("weekend")
    page.wait_for_function(
        "n => document.querySelectorAll('.plan li').length === n", arg=len(plan.steps)
    )
    shown = page.locator(".plan li .minutes").all_text_contents()
    said = Language(code).say
    assert shown == [said("bench.learn.minutes", n=step.minutes) for step in plan.steps]
    [done] = page.locator(".plan li.isDone .title").all_text_contents()
    assert SCORES.brief(code).title in done
    page.reload()
    page.wait_for_selector(".plan details[open] li", timeout=LONG)
    assert page.is_checked("input[value=weekend]")
    go(page, "plan", **{"learn.plan": "interview"})  # a link
    page.wait_for_selector("input[value=interview]:checked", timeout=LONG)
    page.check("input[value=weekend]")
    page.wait_for_function("() => !location.hash.includes('learn.plan')")
    assert page.is_checked("input[value=weekend]")


STEPS = {
    "chapter": "article h1",
    "lab": ".experiment form",
    "practice": "#code",
    "quiz": ".ask",
    "capstone": ".capstone form",
}


@pytest.mark.parametrize("kind", STEPS)
def test_a_step_of_a_plan_opens_with_one_click(page: Any, code: str, kind: str) -> None:
    open_plan(page)
    assert page.locator("nav .following").count() == 0
    page.evaluate("document.querySelectorAll('.plan details').forEach((d) => (d.open = true))")
    plan = read_plan("weekend")
    at = next(n for n, step in enumerate(plan.steps) if step.kind == kind)
    step, entry = plan.steps[at], page.locator(".plan li .title .entry").nth(at)
    assert step.title(Language(code)) in entry.inner_text()
    entry.press("Enter")
    page.wait_for_selector(STEPS[kind], timeout=LONG)
    first = plan.steps[0]  # not read to its end
    if step == first:
        assert page.locator("nav .following").count() == 0
    else:
        said = Language(code).say("bench.learn.plan.next", title=first.title(Language(code)))
        assert said in page.inner_text("nav .following")


def test_a_capstone_says_whose_each_part_is_and_which_is_wrong(
    page: Any, code: str, learner: tuple[Server, Path]
) -> None:
    _, folder = learner
    own = [find_exercise(name) for name in TRACKS["translator"].parts[:3]]
    for exercise in own:
        source = exercise.solution
        if exercise.name == "merge_heads":
            source = "def merge_heads(x):\n    return x.flatten(1)\n"
        (folder / exercise.file_name).write_text(source, "utf-8")
    go(page, "capstone:translator")
    page.reload()
    page.wait_for_selector(".capstone form", timeout=LONG)
    assert page.locator(".capstone li.tried").count() == len(own)
    assert page.locator(".capstone li.lent").count() == len(TRACKS["translator"].parts) - len(own)
    page.click(".capstone form .main")
    page.wait_for_selector(".capstone .result", timeout=2 * LONG)
    expected = {"en": "Où est la gare ?", "zh": "车站在哪里?"}[code]
    assert page.inner_text(".result .written").replace("？", "?") == expected
    assert page.locator(".capstone li.yours").count() == 2
    wrong = page.inner_text(".capstone li.wrong")
    assert "(1, 7, 256)" in wrong and "20_merge_heads.py" in page.inner_text(".mistake b")
    page.click("nav[aria-label] >> text=GPT")
    page.wait_for_selector(".capstone li:nth-child(9):last-child", timeout=LONG)
    assert page.locator(".result").count() == page.locator(".capstone select").count() == 0


def test_a_capstone_can_be_cancelled(page: Any, learner: tuple[Server, Path]) -> None:
    server, folder = learner
    file = folder / find_exercise("merge_heads").file_name
    file.write_text("def merge_heads(x):\n    while True:\n        pass\n", "utf-8")
    go(page, "capstone:decoder")
    page.wait_for_selector(".capstone form", timeout=LONG)
    page.click(".capstone form .main")
    page.wait_for_selector(".capstone form progress")
    page.click(".capstone form .plain")
    page.wait_for_selector(".capstone form progress", state="detached")
    while server.pool.waiting:
        page.wait_for_timeout(100)
    assert page.locator(".result, .fault").count() == 0
    assert server.pool.replaced == 0, "a run that is given up ends without its worker"
