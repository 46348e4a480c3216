"""The Atlas in a browser: it zooms, pans, reads cells, finds tokens, and is restored by a link."""

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from glassformer.tracing import Site
from glassformer.workbench.memory import Memory
from glassformer.workbench.wire.requests import ReadingRequest
from workbench.browsing import listen
from workbench.served import TOKEN, Server

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser

STORY = " ".join(
    f"On day {day} the old man went down to the sea and looked for his boat." for day in range(25)
)
SITE, HEAD = "decoder.1.self", 1
ASKED = f"model=writer&room=atlas&site={SITE}&head={HEAD}&lang=en&sentence={quote(STORY)}"


@pytest.fixture(scope="module")
def site() -> Site:
    asked = ReadingRequest(model="writer", text=STORY)
    return Memory().reading(asked, lambda _: None).trace[SITE]


class Atlas:
    """A page on which the Atlas is open, and what it says."""

    def __init__(self, page: Any, server: Server, asked: str = ASKED) -> None:
        self.page, self.faults = page, listen(page, server)
        page.goto(f"http://{server.host}/#token={TOKEN}&{asked}")
        page.locator("#weight").wait_for()
        page.locator("#survey progress").wait_for(state="detached")
        self.map = page.locator(".map")
        self.map.scroll_into_view_if_needed()

    def place(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.page.url).fragment))

    def wait_for(self, is_there: Callable[[dict[str, str]], bool]) -> dict[str, str]:
        """The place that the address names, once it is as expected."""
        self.page.wait_for_url(lambda url: is_there(dict(parse_qsl(urlsplit(url).fragment))))
        return self.place()

    def view(self) -> list[float]:
        """x, y and size, as soon as the address says them."""
        found = self.wait_for(lambda place: "atlas.view" in place)["atlas.view"]
        return [float(n) for n in found.split("_")]

    def cell(self, query: int | None = None, key: int | None = None) -> tuple[int, int, float]:
        """Query, key and weight of the panel, once it shows these."""
        panel = self.page.get_by_role("region", name="Chosen cell")
        places = panel.locator(".where .place")
        for nth, place in enumerate((query, key)):
            if place is not None:
                expect(places.nth(nth)).to_have_text(str(place))
        found = [int(text) for text in places.all_inner_texts()]
        return found[0], found[1], float(panel.locator("#weight").get_attribute("data-weight"))

    def turn_wheel(self, x: float, y: float, *, notches: int, by: float) -> None:
        """One turn of the wheel: all notches in one task, so that no pause can divide it."""
        self.page.evaluate(
            """([x, y, notches, by]) => {
              const under = document.elementFromPoint(x, y);
              const notch = { clientX: x, clientY: y, deltaY: by, bubbles: true, cancelable: true };
              for (let n = 0; n < notches; n++) under.dispatchEvent(new WheelEvent('wheel', notch));
            }""",
            [x, y, notches, by],
        )

    def press(self, *keys: str) -> None:
        self.map.focus()
        for key in keys:
            self.page.keyboard.press(key)


@pytest.fixture
def atlas(chromium: Any, server: Server) -> Iterator[Atlas]:
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    opened = Atlas(page, server)
    yield opened
    assert opened.faults == []
    page.close()


def weight(site: Site, query: int, key: int) -> float:
    return float(site.weights(HEAD, rows=[query], cols=[key])[0, 0])


def test_zoom_pan_and_click_read_the_exact_weight(atlas: Atlas, site: Site) -> None:
    box = atlas.map.bounding_box()
    x, y = box["x"] + 130, box["y"] + 200  # under the diagonal
    atlas.page.mouse.move(x, y)
    atlas.page.mouse.wheel(0, -240)
    before = atlas.view()
    for _ in range(12):
        atlas.page.mouse.wheel(0, -240)
    atlas.wait_for(lambda place: float(place["atlas.view"].split("_")[2]) > 5 * before[2])
    atlas.page.mouse.down()
    atlas.page.mouse.move(x + 120, y - 90, steps=4)
    atlas.page.mouse.up()
    atlas.page.mouse.click(x + 60, y + 40)
    shown = re.compile(r"(\d+) .*→ (\d+) ")
    expect(atlas.page.locator("#hover")).to_have_text(shown)
    found = shown.match(atlas.page.locator("#hover").inner_text())
    assert found is not None
    query, key = map(int, found.groups())
    expected = pytest.approx(weight(site, query, key), rel=1e-5)
    assert atlas.cell(query, key) == (query, key, expected)
    atlas.wait_for(lambda place: (place.get("query"), place.get("key")) == (str(query), str(key)))


def test_a_click_on_the_overview_reads_the_strongest_cell_of_the_block(
    atlas: Atlas, site: Site
) -> None:
    box = atlas.map.bounding_box()
    atlas.page.mouse.click(box["x"] + 110, box["y"] + 260)
    place = atlas.wait_for(lambda place: "query" in place and "key" in place)
    query, key, found = atlas.cell(int(place["query"]), int(place["key"]))
    assert found == pytest.approx(weight(site, query, key), rel=1e-5)
    # Blocks of 2 × 2 cells: no other cell of the block is stronger.
    first = query // 2 * 2, key // 2 * 2
    others = site.weights(HEAD, rows=[first[0], first[0] + 1], cols=[first[1], first[1] + 1])
    assert found == pytest.approx(float(others.max()), rel=1e-5)


def test_keys_move_the_cell_and_zoom(atlas: Atlas, site: Site) -> None:
    atlas.press("0", "Enter")
    assert atlas.view()[2] == 36
    query, key, _ = atlas.cell()
    atlas.press("ArrowDown", "ArrowDown", "ArrowRight")
    expected = pytest.approx(weight(site, query + 2, key + 1), rel=1e-5)
    assert atlas.cell(query + 2, key + 1) == (query + 2, key + 1, expected)
    atlas.press("-")
    atlas.wait_for(lambda place: not place["atlas.view"].endswith("_36"))
    atlas.press("0")
    atlas.wait_for(lambda place: "atlas.view" not in place)


def test_a_token_is_found_again_and_again(atlas: Atlas) -> None:
    atlas.page.fill("#sought", "boat")
    found, places = [], atlas.page.locator("#places")
    for _ in range(3):
        atlas.page.get_by_role("button", name="Next key").click()
        last = found[-1] if found else "none"
        expect(places).to_have_text(re.compile(rf"Position (?!{last};)\d+; 25 in all"))
        found.append(places.inner_text().split()[1].rstrip(";"))
        assert atlas.cell(key=int(found[-1]))[1] == int(found[-1])
    assert len(set(found)) == 3
    expect(atlas.page.locator(".where .token").nth(1)).to_contain_text("boat")
    atlas.page.fill("#sought", "zebra")
    atlas.page.get_by_role("button", name="Next query").click()
    expect(places).to_have_text("Not in this text.")


def test_a_reload_restores_the_view_and_the_settings(atlas: Atlas) -> None:
    atlas.page.select_option("#pool", "mean")
    atlas.page.select_option("#curve", "log")
    atlas.page.select_option("#scale", "all")
    atlas.page.check("#first")
    atlas.press("Enter")
    view, cell = atlas.view(), atlas.cell()
    atlas.page.reload()
    atlas.page.locator("#weight").wait_for()
    assert atlas.view() == view and atlas.cell() == cell
    chosen = [atlas.page.locator(f"#{name}").input_value() for name in ("pool", "curve", "scale")]
    assert chosen == ["mean", "log", "all"] and atlas.page.is_checked("#first")


def test_the_overview_can_be_stopped_and_continued(atlas: Atlas) -> None:
    """The questions of another head's survey are held back until it is stopped."""

    def hold(_route: Any) -> None:
        """Neither sent nor refused: the browser waits."""

    atlas.page.route("**/api/atlas/survey", hold)
    atlas.page.select_option("#head", "2")
    survey = atlas.page.locator("#survey")
    survey.get_by_role("button", name="Cancel").click()
    expect(survey).to_contain_text("Overview stopped at 0 %")
    atlas.page.unroute("**/api/atlas/survey")
    survey.get_by_role("button", name="Continue").click()
    expect(survey).not_to_contain_text("stopped")
    expect(survey.locator("progress")).to_have_count(0)


def test_a_short_text_in_chinese_says_what_the_atlas_is_for(chromium: Any, server: Server) -> None:
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    opened = Atlas(page, server, "model=writer&room=atlas&lang=zh&theme=dark&sentence=The+old+man")
    assert "只有 3 个词元" in page.locator("main").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert opened.faults == []
    page.close()


def test_back_undoes_a_zoom_in_one_step(atlas: Atlas) -> None:
    steps = atlas.page.evaluate("history.length")
    box = atlas.map.bounding_box()
    x, y = box["x"] + 130, box["y"] + 200
    atlas.turn_wheel(x, y, notches=8, by=-240)
    once = atlas.view()
    atlas.page.mouse.move(x, y)
    atlas.page.mouse.down()
    atlas.page.mouse.move(box["x"] + 180, box["y"] + 160, steps=3)
    atlas.page.mouse.up()
    atlas.wait_for(lambda place: place["atlas.view"] != "_".join(map(str, once)))
    assert atlas.page.evaluate("history.length") == steps + 1  # a movement is none of its own
    atlas.turn_wheel(x, y, notches=4, by=240)
    atlas.wait_for(lambda place: float(place["atlas.view"].split("_")[2]) < once[2])
    assert atlas.page.evaluate("history.length") == steps + 2
    atlas.page.go_back()
    atlas.wait_for(lambda place: float(place["atlas.view"].split("_")[2]) == once[2])
    atlas.page.go_back()
    atlas.wait_for(lambda place: "atlas.view" not in place)
