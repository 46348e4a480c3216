"""Writing in a browser: scrub, choose otherwise, change settings, search; links restore it all."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

import glassformer as gf
from workbench.browsing import listen
from workbench.served import TOKEN, Server

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser

TEXT = "It was a dark"
WRITER = f"room=writing&model=writer&sentence={quote(TEXT)}&writing.max_new_tokens=12"
TRANSLATOR = f"room=writing&model=translator&to=fr&sentence={quote('Where is the station?')}"


class Room:
    """A page on which Writing is open."""

    def __init__(self, browser: Any, server: Server, asked: str, **options: Any) -> None:
        self.page = browser.new_page(viewport={"width": 1280, "height": 900}, **options)
        self.faults = listen(self.page, server)
        self.page.goto(f"http://{server.host}/#token={TOKEN}&{asked}")
        self.tokens = self.page.locator(".line button")

    def written(self) -> str:
        """The text that is shown, once it is there."""
        self.tokens.first.wait_for()
        return "".join(self.tokens.all_text_contents())

    def wait_for(self, is_there: Callable[[dict[str, str]], bool]) -> None:
        self.page.wait_for_url(lambda url: is_there(dict(parse_qsl(urlsplit(url).fragment))))

    def close(self) -> None:
        assert self.faults == []
        self.page.close()


@pytest.fixture
def enter(chromium: Any, server: Server) -> Iterator[Callable[..., Room]]:
    opened: list[Room] = []

    def open_room(asked: str, **options: Any) -> Room:
        opened.append(Room(chromium, server, asked, **options))
        return opened[-1]

    yield open_room
    for room in opened:
        room.close()


def test_the_text_is_the_librarys_and_a_scrubber_walks_through_it(enter: Any) -> None:
    room = enter(f"{WRITER}&lang=en")
    expected = gf.generate(gf.load("writer"), TEXT, temperature=0.8, seed=1, max_new_tokens=12)
    assert room.written() == expected.replace("\n", "⏎")
    scrubber = room.page.get_by_role("slider", name="Token shown")
    for _ in range(3):
        scrubber.press("ArrowRight")
    expect(room.tokens.nth(3)).to_have_attribute("aria-current", "step")
    expect(room.page.locator("output[for=step]")).to_have_text("4 / 12")
    expect(room.page.locator(".look").first).to_contain_text("%")
    room.tokens.nth(3).press("ArrowLeft")
    expect(room.tokens.nth(2)).to_be_focused()
    room.wait_for(lambda place: place.get("writing.at") == "2")
    room.page.get_by_role("slider", name="Entropy").press("ArrowLeft")
    expect(room.tokens.nth(1)).to_have_attribute("aria-current", "step")
    room.page.locator("#looked").check()
    expect(room.page.get_by_text("mean of")).to_have_count(0)


def test_another_choice_is_written_on_and_a_link_gives_the_same_text(enter: Any) -> None:
    room = enter(f"{WRITER}&lang=en&writing.at=2")
    before = room.written()
    start = "".join(room.tokens.all_text_contents()[:2])
    third = room.page.locator("tbody th button").nth(3)
    piece = third.inner_text()
    third.click()
    expect(room.tokens.nth(2)).to_have_text(piece.replace("␣", " "))
    expect(room.page.locator(".isKept")).to_have_count(3)
    after = room.written()
    assert after != before and after.startswith(start)
    room.wait_for(lambda place: "writing.kept" in place)
    shared = enter(urlsplit(room.page.url).fragment)
    assert shared.written() == after
    room.page.locator("#writing-temperature").fill("0")
    room.page.locator("#writing-temperature").press("Enter")
    expect(room.page.locator("tr.chosen .figures").last).to_have_text("100 %")
    room.wait_for(lambda place: place.get("writing.temperature") == "0")
    assert room.written().startswith(start)
    room.page.get_by_role("button", name="Write from the beginning").click()
    greedy = gf.generate(gf.load("writer"), TEXT, max_new_tokens=12)
    expect(room.page.locator(".isKept")).to_have_count(0)
    assert room.written() == greedy.replace("\n", "⏎")


def test_beams_are_a_tree_of_real_text(enter: Any) -> None:
    room = enter(f"{TRANSLATOR}&lang=en")
    assert room.written() == "Où se trouve la gare ?</s>"
    tree = room.page.get_by_role("tree")
    chosen = tree.locator("[aria-selected=true]")
    expect(chosen).to_contain_text("</s>")
    expect(room.page.locator(".detail")).to_contain_text("Où se trouve la gare ?")
    chosen.press("ArrowLeft")
    expect(chosen).to_be_focused()
    expect(room.page.locator(".detail")).to_contain_text("kept and continued")
    shown = tree.get_by_role("treeitem").count()
    room.page.get_by_label("Show candidates that were pruned at once").check()
    pruned = tree.locator("[data-fate=pruned]").first
    pruned.click()
    assert tree.get_by_role("treeitem").count() > shown
    expect(room.page.locator(".detail")).to_contain_text("It was pruned")
    room.page.get_by_role("button", name="Write on from here").click()
    room.wait_for(lambda place: "writing.kept" in place)


def test_an_encoder_fills_gaps_instead(enter: Any) -> None:
    room = enter(f"room=writing&model=reader&lang=en&sentence={quote('The king')}")
    room.page.get_by_role("button", name="Fill a gap in this text").click()
    room.wait_for(lambda place: "room" not in place and place["sentence"] == "The king [MASK]")


def test_in_chinese_and_dark(enter: Any) -> None:
    room = enter(f"{WRITER}&lang=zh&theme=dark&writing.at=4")
    room.written()
    expect(room.page.get_by_role("heading", name="此处的候选词元")).to_be_visible()
    room.page.get_by_role("button", name="播放").click()
    expect(room.tokens.nth(5)).to_have_attribute("aria-current", "step")
    room.page.get_by_role("button", name="暂停").click()
