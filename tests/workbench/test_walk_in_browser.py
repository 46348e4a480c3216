"""A walk through the rooms that show a run, by keys, in both languages: each says the same weight.

Type a sentence, click a token, change head and layer by key, step, zoom, switch, go back and
forward, reload, open the link elsewhere: the path stays, and the numbers are the library's.
"""

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from glassformer.languages import CODES, Language
from glassformer.tracing import Trace
from glassformer.workbench.memory import Memory
from glassformer.workbench.wire.requests import ReadingRequest
from workbench.browsing import listen
from workbench.served import TOKEN, Server

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
TEXT = "The old man looked at the sea"
QUERY, KEY = 5, 2
# Of rooms that say the weight of the chosen cell: where, and as which attribute.
WEIGHTS = {
    "look": ("#result", "data-value"),
    "steps": (f"td[data-step=weights][data-key='{KEY}']", "data-value"),
    "atlas": ("#weight", "data-weight"),
}


@pytest.fixture(scope="module")
def trace() -> Trace:
    return Memory().reading(ReadingRequest(model="writer", text=TEXT), lambda _: None).trace


class Walk:
    """A tab in one language, and the weight that each room says."""

    def __init__(self, tab: Any, code: str) -> None:
        self.tab, self.say = tab, Language(code).say

    def enter(self, room: str) -> None:
        door = self.tab.get_by_role("button", name=self.say(f"bench.room.{room}"), exact=True)
        door.focus()
        door.press("Enter")
        expect(door).to_have_attribute("aria-current", "page")

    def expect_weight(self, room: str, expected: float) -> None:
        """The weight of the cell, once the room says it; rounded as nobody else's is."""
        place, attribute = WEIGHTS[room]
        start = re.escape(f"{expected:.6f}"[:5])
        expect(self.tab.locator(place).first).to_have_attribute(attribute, re.compile(start))

    def place(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.tab.url).fragment))


@pytest.mark.parametrize("code", CODES)
def test_one_path_through_all_rooms(chromium: Any, server: Server, trace: Trace, code: str) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 720})
    context.set_default_timeout(30_000)
    tab = context.new_page()
    faults, walk = listen(tab, server), Walk(tab, code)
    tab.goto(f"http://{server.host}/#token={TOKEN}&model=writer&lang={code}&steps.at=weights")
    tab.locator("#result").wait_for()

    # Type, click a token, and choose layer, head and key without a mouse.
    tab.locator("#sentence").fill(TEXT)
    tab.keyboard.press("Enter")
    tab.locator(f"ol >> text={TEXT}").wait_for()
    chips = tab.get_by_role("group", name=walk.say("bench.tokens")).get_by_role("button")
    chips.nth(QUERY).click()
    expect(tab.locator("#query")).to_have_value(str(QUERY))
    tab.locator("#key").select_option(str(KEY))
    tab.locator("#site").select_option("decoder.1.self")
    tab.locator("#head").select_option("1")
    tab.locator("#view-title").click()  # nothing that takes keys itself
    tab.keyboard.press(".")
    expect(tab.locator("#site")).to_have_value("decoder.2.self")
    tab.keyboard.press("]")
    expect(tab.locator("#head")).to_have_value("2")

    def weight(site: str, head: int) -> float:
        return float(trace[site].weights(head)[QUERY, KEY])

    # The same cell in the other rooms that say it; and the keys of the path in each.
    walk.expect_weight("look", weight("decoder.2.self", 2))
    walk.enter("steps")
    walk.expect_weight("steps", weight("decoder.2.self", 2))
    tab.locator("#step h2").click()
    tab.keyboard.press("ArrowLeft")
    expect(tab.locator("nav button[aria-current=step]")).to_have_attribute("data-step", "exp")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("[")
    expect(tab.locator("#head")).to_have_value("1")
    walk.expect_weight("steps", weight("decoder.2.self", 1))
    walk.enter("atlas")
    walk.expect_weight("atlas", weight("decoder.2.self", 1))
    tab.keyboard.press(".")
    expect(tab.locator("#site")).to_have_value("decoder.3.self")
    walk.expect_weight("atlas", weight("decoder.3.self", 1))
    tab.locator(".map").focus()
    tab.keyboard.press("Enter")  # zoom in
    tab.wait_for_url(lambda url: "atlas.view" in url)

    # Back and forward, a reload, the other language, and the link in another tab.
    tab.go_back()
    tab.wait_for_url(lambda url: "atlas.view" not in url)
    tab.go_back()
    walk.expect_weight("atlas", weight("decoder.2.self", 1))
    tab.go_forward()
    walk.expect_weight("atlas", weight("decoder.3.self", 1))
    tab.go_forward()
    tab.wait_for_url(lambda url: "atlas.view" in url)
    tab.reload()
    walk.expect_weight("atlas", weight("decoder.3.self", 1))
    assert "atlas.view" in walk.place()
    tab.locator("h1").click()
    tab.keyboard.press("l")
    other = Language(CODES[1 - CODES.index(code)])
    title = other.say("bench.atlas.cell")
    expect(tab.get_by_role("heading", name=title)).to_be_visible()
    tab.wait_for_url(lambda url: f"lang={other.code}" in url)
    linked = context.new_page()
    heard = listen(linked, server)
    linked.goto(tab.url)
    Walk(linked, other.code).expect_weight("atlas", weight("decoder.3.self", 1))
    expect(linked.get_by_role("heading", name=title)).to_be_visible()
    for name, value in (("site", "decoder.3.self"), ("head", "1"), ("query", "5"), ("key", "2")):
        expect(linked.locator(f"#{name}")).to_have_value(value)
    context.close()
    assert faults == [] and heard == []


@pytest.mark.parametrize("code", CODES)
def test_every_control_can_be_reached_by_key_and_is_seen(
    chromium: Any, server: Server, code: str
) -> None:
    """Tab visits all that can be pressed, in every room; what has the focus is outlined."""
    tab = chromium.new_page(viewport={"width": 1280, "height": 720})
    tab.set_default_timeout(30_000)
    faults = listen(tab, server)
    tab.goto(f"http://{server.host}/#token={TOKEN}&model=writer&lang={code}")
    rooms = {
        "look": "#result",
        "steps": "#step h2",
        "shapes": "[data-box=model]",
        "touch": ".effect .along button",
        "flow": "#reasons-panel tbody th",
        "atlas": "#weight",
        "writing": ".line button",
        "training": "pre",
        "learn": ".chapters",
    }
    for room, content in rooms.items():
        tab.evaluate(f"location.hash = 'model=writer&lang={code}&room={room}'")
        tab.locator(content).first.wait_for()
        expect(tab.locator("main[aria-busy=true], main [aria-busy=true]")).to_have_count(0)
        tab.evaluate(REMEMBER)
        unseen = []
        for _ in range(tab.evaluate("reachable.size") + 1):
            tab.keyboard.press("Tab")
            unseen += [each for each in [tab.evaluate(VISIT)] if each]
            if tab.evaluate("reachable.size === 0"):
                break
        assert unseen == [], room
        assert tab.evaluate("[...reachable].map((each) => each.outerHTML.slice(0, 200))") == []
        tab.get_by_role("button", name=Language(code).say("page.keys")).press("Enter")
        rows = tab.locator("dialog[open] dl div")
        expect(rows.last).to_contain_text(Language(code).say("page.keys.close"))
        assert rows.count() >= 6, room
        tab.keyboard.press("Escape")
        expect(tab.locator("dialog[open]")).to_have_count(0)
    tab.close()
    assert faults == []


# Everything that may have the focus. Of radio buttons that share a name, one has.
REMEMBER = """() => {
  document.activeElement?.blur();
  window.scrollTo(0, 0);
  const all = 'a[href], button, input, select, textarea, summary, [tabindex]';
  const isThere = (each) => !each.disabled && each.tabIndex >= 0 && each.checkVisibility()
    && each.closest('dialog:not([open])') === null;
  globalThis.reachable = new Set([...document.querySelectorAll(all)].filter(isThere));
}"""
VISIT = """() => {
  const here = document.activeElement;
  reachable.delete(here);
  if (here === document.body) return null;
  const { outlineStyle, outlineWidth } = getComputedStyle(here);
  const frame = here.matches('g') ? here.querySelector('rect') : null; // drawn boxes
  const isSeen = frame === null
    ? outlineStyle !== 'none' && outlineWidth !== '0px'
    : getComputedStyle(frame).strokeWidth === '2px';
  return isSeen ? null : here.outerHTML.slice(0, 200);
}"""
