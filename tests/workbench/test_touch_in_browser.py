"""Touch in a browser: switches write interventions, both runs are shown, links restore them."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.touch import compare_runs
from glassformer.workbench.wire.touch import ChangeRequest
from workbench.browsing import listen
from workbench.served import TOKEN, Server

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser

TEXT = "Mrs. Weston smiled, and"
CELL = {"site": "decoder.1.self", "head": 2, "query": 5, "key": 2}
PLACE = "&".join(f"{name}={value}" for name, value in CELL.items())
ASKED = f"model=writer&room=touch&sentence={quote(TEXT)}&{PLACE}"


@pytest.fixture
def open_room(server: Server, chromium: Any) -> Iterator[Any]:
    opened: list[tuple[Any, list[str]]] = []

    def open_at(asked: str) -> Any:
        page = chromium.new_page(viewport={"width": 1280, "height": 720})
        page.set_default_timeout(90_000)
        opened.append((page, listen(page, server)))
        page.goto(f"http://{server.host}/#token={TOKEN}&{asked}")
        page.locator(".effect .along button").first.wait_for()
        return page

    yield open_at
    for page, faults in opened:
        page.close()
        assert faults == []


def change_of(page: Any) -> str | None:
    return dict(parse_qsl(urlsplit(page.url).fragment)).get("change")


def test_a_switch_changes_the_run_and_the_numbers_are_the_librarys(open_room: Any) -> None:
    page = open_room(f"{ASKED}&lang=en")
    page.get_by_label("Knock out, in all heads").check()
    change = "knockout(decoder.1.self, queries=5, keys=2)"
    expect(page.locator("#change")).to_have_value(change)
    page.get_by_role("heading", name="What the model writes").wait_for()
    asked = ChangeRequest(model="writer", text=TEXT, change=change, **CELL)  # type: ignore[arg-type]
    found = compare_runs(asked, Memory(), lambda _: None)
    before, after = (found["head"][name][5][2] for name in ("before", "after"))
    assert after == 0
    expect(page.locator(".effect .readout")).to_contain_text(f"{before:.4f}")
    best = found["tokens"][0]
    row = page.get_by_role("row", name=best["token"]).last
    expect(row).to_contain_text(f"{100 * best['after']:.1f}".removesuffix(".0"))
    assert change_of(page) == change
    page.reload()
    expect(page.get_by_label("Knock out, in all heads")).to_be_checked()
    page.get_by_role("button", name="Undo all").click()
    expect(page.locator("#change")).to_have_value("")
    page.go_back()
    expect(page.locator("#change")).to_have_value(change)
    page.locator("#change").fill("ablate(decoder.1.self)")  # acts on what its heads write
    page.keyboard.press("Enter")
    expect(page.locator(".effect .note").first).to_contain_text("stay the same")


def test_what_is_typed_shows_in_the_switches_or_is_refused_in_a_sentence(open_room: Any) -> None:
    page = open_room(f"{ASKED}&lang=zh")
    box = page.locator("#change")
    box.fill("swap(decoder.1.self, mask=none) & ablate(decoder.1.self, head=2)")
    box.press("Enter")
    expect(page.locator("#mask")).to_have_value("none")
    expect(page.locator("#removal")).to_have_value("zero")
    expect(page.get_by_role("heading", name="模型写出的文本")).to_be_visible()
    box.fill("explode(decoder.1.self)")
    box.press("Enter")
    expect(page.locator("#change-fault")).to_contain_text("An intervention is one of")


def test_arrows_move_one_cursor_over_all_maps(open_room: Any) -> None:
    page = open_room(f"{ASKED}&lang=en&change={quote('ablate(decoder.0.mlp)')}")
    assert page.locator(".maps svg").count() == 3
    page.locator(".maps").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#key")).to_have_value("1")
    assert page.locator(".maps .mark").count() == 3
