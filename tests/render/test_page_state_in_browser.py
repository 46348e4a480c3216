"""What is chosen lives in the address; shortcuts fit every keyboard; every system's colours do."""

import re

import pytest

from render.conftest import settled
from render.page_traces import decoder

pytestmark = pytest.mark.browser
PRESS = """(options) => document.body.dispatchEvent(
  new KeyboardEvent('keydown', { bubbles: true, cancelable: true, ...options }))"""


def title(tab) -> list[str]:
    settled(tab)
    return tab.locator("#view-title").inner_text().split()


def state(tab) -> dict:
    """Everything of a page that a person can choose and see."""
    settled(tab)
    return {
        "title": title(tab),
        "cell": tab.locator("#result").get_attribute("data-cell"),
        "view": tab.locator("[role=tab][aria-selected=true]").inner_text(),
        "text": tab.locator("button[aria-pressed]").get_attribute("aria-pressed"),
        "language": tab.locator("#language").input_value(),
        "theme": tab.evaluate("document.documentElement.dataset.theme"),
        "legend": tab.locator("#legend-meaning").all_inner_texts(),
    }


def test_a_page_that_nobody_touched_has_a_plain_address(open_page) -> None:
    tab = open_page(decoder(6))
    tab.keyboard.press("2")
    tab.wait_for_url(re.compile("#view=lines$"))
    tab.keyboard.press("1")
    tab.wait_for_url(re.compile(r"#?$"))


def test_reload_and_links_show_the_same_again(open_page) -> None:
    tab = open_page(decoder(40))
    tab.locator('[data-head="1 2"]').click()
    settled(tab)
    tab.locator("[role=application]").focus()
    for key in ("End", "PageUp", "Home", "ArrowRight"):
        tab.keyboard.press(key)
    tab.locator(".legend summary").click()
    tab.select_option("#scale", "row")
    tab.locator("#first").check()
    tab.select_option("#language", "zh")
    tab.select_option("#theme", "dark")
    tab.wait_for_url(re.compile("site=decoder.1.self.*scale=row.*theme=dark&lang=zh"))
    chosen = state(tab)
    assert chosen["title"][0] == "decoder.1.self" and chosen["theme"] == "dark"
    tab.reload()
    assert state(tab) == chosen
    link = tab.context.new_page()
    link.goto(tab.url)
    assert state(link) == chosen


def test_back_returns_to_the_head_before(open_page) -> None:
    tab = open_page(decoder(6), fragment="#site=decoder.0.self&head=0&query=4&key=2")
    before = tab.url
    tab.keyboard.press("]")
    assert title(tab)[-1] == "1"
    tab.wait_for_url(re.compile("head=1"))
    tab.locator("[role=application]").focus()
    tab.keyboard.press("ArrowLeft")  # another cell is no step of its own
    tab.wait_for_url(re.compile("key=1"))
    tab.keyboard.press("2")
    tab.wait_for_url(re.compile("view=lines"))
    tab.go_back()
    assert title(tab)[-1] == "1"
    assert state(tab)["view"] == "Heat map" and state(tab)["cell"] == "4 1"
    tab.go_back()
    assert tab.url == before
    assert title(tab)[-1] == "0"
    tab.go_forward()
    assert title(tab)[-1] == "1"


@pytest.mark.parametrize(
    "fragment",
    ["#site=nowhere&head=99", "#query=999999&key=999999", "#run=7&sequence=9", "#<img>&view=%"],
)
def test_an_address_may_say_anything(open_page, fragment: str) -> None:
    tab = open_page(decoder(6), fragment=fragment)
    query, key = map(int, state(tab)["cell"].split())
    assert 0 <= query < 6 and 0 <= key < 6


@pytest.mark.parametrize(
    "graph",
    [
        {"ctrlKey": True, "altKey": True, "modifierAltGraph": True},  # Windows
        {"modifierAltGraph": True},  # Linux
    ],
)
def test_brackets_that_need_another_key(open_page, graph: dict) -> None:
    tab = open_page(decoder(6), fragment="#site=decoder.0.self&head=0")
    tab.evaluate(PRESS, {"key": "]", **graph})
    assert title(tab)[-1] == "1"
    tab.evaluate(PRESS, {"key": "[", **graph})
    assert title(tab)[-1] == "0"
    tab.evaluate(PRESS, {"key": "n"})
    assert title(tab)[-1] == "1"
    tab.evaluate(PRESS, {"key": "з", "code": "KeyP"})  # where letters are not Latin
    assert title(tab)[-1] == "0"


def test_commands_of_the_browser_are_no_shortcuts(open_page) -> None:
    tab = open_page(decoder(6), fragment="#site=decoder.0.self&head=0")
    for held in ({"ctrlKey": True}, {"metaKey": True}, {"altKey": True}):
        tab.evaluate(PRESS, {"key": "]", **held})
        tab.evaluate(PRESS, {"key": "t", **held})
    assert title(tab)[-1] == "0" and state(tab)["text"] == "false"
    tab.locator("#site").focus()
    tab.keyboard.press("t")
    assert state(tab)["text"] == "false"


def test_shortcuts_can_be_switched_off(open_page) -> None:
    tab = open_page(decoder(6))
    tab.keyboard.press("?")
    tab.locator("#shortcuts").uncheck()
    tab.keyboard.press("Escape")
    for key in ("t", "2", "?", "]"):
        tab.keyboard.press(key)
    assert state(tab)["text"] == "false" and state(tab)["view"] == "Heat map"
    assert not tab.locator("dialog").is_visible()
    tab.wait_for_url(re.compile("shortcuts=0"))
    tab.reload()
    settled(tab)
    tab.keyboard.press("t")
    assert state(tab)["text"] == "false"
    tab.locator("[role=application]").focus()
    tab.keyboard.press("+")  # what only works where the focus is may stay
    tab.get_by_role("button", name="Keyboard shortcuts").click()
    tab.locator("#shortcuts").check()
    tab.keyboard.press("Escape")
    tab.locator("h1").click()
    tab.keyboard.press("t")
    assert state(tab)["text"] == "true"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_are_seen_in_the_colours_of_the_system(open_page, scheme: str) -> None:
    tab = open_page(decoder(6), forced_colors="active", color_scheme=scheme)
    colour = "(element, name) => getComputedStyle(element)[name]"
    ground = tab.locator("body").evaluate(colour, "backgroundColor")
    for mark in tab.locator(".mark:not(.even)").all():
        assert mark.evaluate(colour, "backgroundColor") not in (ground, "rgba(0, 0, 0, 0)")
    chosen = tab.locator("[role=tab][aria-selected=true]")
    assert chosen.evaluate(colour, "outlineStyle") == "solid"
    gradient = tab.locator(".legend .bar").evaluate(colour, "backgroundImage")
    assert gradient.startswith("linear-gradient")
    # Names along the map are painted in the system's own ink, which its ground lets be seen.
    ink = tab.evaluate("""() => {
      const probe = document.body.appendChild(document.createElement('span'));
      probe.style.color = 'CanvasText';
      const found = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
      probe.remove();
      const canvas = document.querySelector('canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, 40, canvas.height);
      let n = 0;
      for (let i = 0; i < data.length; i += 4) {
        n += data[i + 3] > 200 && found.every((part, c) => Math.abs(part - data[i + c]) < 40);
      }
      return n;
    }""")
    assert ink > 20
    tab.keyboard.press("2")
    chosen = tab.locator("li.chosen").first
    assert chosen.evaluate(colour, "outlineStyle") == "solid"
