"""Every room in both schemes, on a desk and on a phone: axe-core finds nothing to complain of."""

from collections.abc import Iterator
from typing import Any

import pytest

from workbench.browsing import CELL, ROOMS, WRITER, enter, listen, train_alphabet
from workbench.served import TOKEN, Server, serving

expect = pytest.importorskip("playwright.sync_api").expect
AXE = pytest.importorskip("axe_playwright_python.sync_playwright").Axe().axe_script
pytestmark = pytest.mark.browser

VIEWS = {
    "look, lines": ("model=translator&to=fr&look.view=lines", "#result"),
    "steps, backward": (f"{WRITER}&{CELL}&room=steps&steps.way=back", "#step h2"),
    "flow, why": (f"{WRITER}&{CELL}&room=flow&flow.view=why", ".verdict strong"),
    "writing, beams": ("model=translator&to=fr&room=writing", "[role=tree]"),
    "training, no run": ("model=writer&room=training", "pre"),
    "chapter": ("room=learn&learn.open=chapter:weights", "figure input[type=number]"),
    "experiment": ("room=learn&learn.open=lab:masks", ".experiment form"),
    "exercise": ("room=learn&learn.open=exercise:dot_product_scores", "#code"),
    "plan": ("room=learn&learn.open=plan&learn.plan=weekend", ".plan details[open] li"),
    "capstone": ("room=learn&learn.open=capstone", ".capstone form"),
    "questions": ("room=learn&learn.open=questions:why", ".ask"),
}
DESK, PHONE = (1280, 720), (390, 844)
LOOKS = (("light", DESK, "en"), ("dark", PHONE, "zh"), ("dark", DESK, "en"), ("light", PHONE, "zh"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    trained = train_alphabet(tmp_path_factory.mktemp("runs"))
    with serving("glassformer.workbench.desk", trained, size=1) as found:
        yield found


@pytest.fixture(scope="module")
def page(chromium: Any, server: Server) -> Iterator[Any]:
    """One page for all rooms: another place is another fragment."""
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    faults = listen(page, server)
    page.goto(f"http://{server.host}/#token={TOKEN}")
    page.evaluate(AXE)
    yield page
    page.close()
    assert faults == []


def judge(page: Any) -> list[str]:
    """What axe-core finds, and whether the page is wider than its window."""
    # Colours on their way to others are nobody's choice.
    page.evaluate("Promise.allSettled(document.getAnimations().map((each) => each.finished))")
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    said = [f"{each['id']}: {node['html'][:300]}" for each in found for node in each["nodes"][:2]]
    return said + ["The page is wider than its window."] * wide


def look_at(page: Any, place: str, content: str, looks: Any) -> None:
    found = {}
    for scheme, (width, height), code in looks:
        page.set_viewport_size({"width": width, "height": height})
        enter(page, f"{place}&theme={scheme}&lang={code}", content)
        found[scheme, width, code] = judge(page)
    assert {look: said for look, said in found.items() if said} == {}


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_in_every_look(page: Any, name: str) -> None:
    look_at(page, *ROOMS[name], LOOKS)


@pytest.mark.parametrize("name", VIEWS)
def test_another_view_of_a_room(page: Any, name: str) -> None:
    look_at(page, *VIEWS[name], LOOKS[:2])


def test_an_experiment_that_has_run(page: Any) -> None:
    enter(page, *VIEWS["experiment"])
    page.click(".experiment form .main")
    page.locator(".verdict").wait_for()
    assert judge(page) == []


def test_a_capstone_that_has_run(page: Any) -> None:
    enter(page, *VIEWS["capstone"])
    page.click(".capstone form .main")
    page.locator(".result .written").wait_for(timeout=120_000)
    assert judge(page) == []


@pytest.mark.parametrize(("scheme", "size", "code"), LOOKS[:2])
def test_dialogs(page: Any, scheme: str, size: tuple[int, int], code: str) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    enter(page, f"{ROOMS['look'][0]}&theme={scheme}&lang={code}", "[data-map]")
    page.keyboard.press("?")
    expect(page.locator("dialog[open] #shortcuts")).to_be_visible()
    assert judge(page) == []
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.locator(".switches button").first.click()
    page.locator("dialog[open] [data-format=python]").click()
    page.locator("dialog[open] pre").wait_for()
    assert judge(page) == []
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_nothing_plays_where_the_system_asks_for_no_motion(chromium: Any, server: Server) -> None:
    page = chromium.new_page(reduced_motion="reduce", locale="en-GB")
    faults = listen(page, server)
    page.goto(f"http://{server.host}/#token={TOKEN}")
    for name in ("steps", "writing", "training"):
        enter(page, *ROOMS[name])
        expect(page.get_by_role("button", name="Play", exact=True)).to_have_count(0)
        assert page.evaluate("document.getAnimations().length") == 0
    page.emulate_media(reduced_motion="no-preference")
    expect(page.get_by_role("button", name="Play", exact=True)).to_have_count(1)
    page.close()
    assert faults == []
