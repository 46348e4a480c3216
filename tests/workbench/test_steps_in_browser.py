"""Steps in a browser: the library's numbers, edits, answers by hand, the way back, a link."""

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from glassformer.functional.arithmetic import RowArithmetic
from glassformer.workbench.memory import Memory
from glassformer.workbench.wire.requests import ReadingRequest
from workbench.browsing import listen
from workbench.served import TOKEN, Server

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser

TEXT, SITE, HEAD, QUERY, KEY = "The cat sat on the mat.", "decoder.2.self", 3, 4, 1
ASKED = f"model=writer&room=steps&site={SITE}&head={HEAD}&query={QUERY}&key={KEY}&sentence={TEXT}"


@pytest.fixture(scope="module")
def row() -> RowArithmetic:
    asked = ReadingRequest(model="writer", text=TEXT)
    return Memory().reading(asked, lambda _: None).trace[SITE].row(HEAD, QUERY)


class Room:
    """A page on which Steps is open."""

    def __init__(self, page: Any, server: Server, asked: str = f"{ASKED}&lang=en") -> None:
        self.page, self.faults = page, listen(page, server)
        page.goto(f"http://{server.host}/#token={TOKEN}&{asked}")
        page.locator("#step h2").wait_for()

    def open(self, step: str) -> None:
        self.page.locator(f"nav button[data-step={step}]").click()
        expect(self.page.locator("nav button[aria-current=step]")).to_have_attribute(
            "data-step", step
        )

    def column(self, step: str) -> list[float]:
        """The numbers of a step, for each key."""
        cells = self.page.locator(f"td[data-step={step}]")
        return [_number(cell.get_attribute("data-value")) for cell in cells.all()]

    def result(self) -> float:
        output = self.page.locator("#step output")
        expect(output).not_to_have_attribute("data-result", "")
        return _number(output.get_attribute("data-result"))

    def type_number(self, text: str) -> None:
        self.page.locator("#step form input").fill(text)
        self.page.locator("#step form input").press("Enter")


def _number(text: str) -> float:
    return -math.inf if text == "-Infinity" else float(text)


@pytest.fixture
def room(chromium: Any, server: Server) -> Iterator[Room]:
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    found = Room(page, server)
    yield found
    assert found.faults == []
    page.close()


def _is_close(found: list[float], expected: Any) -> bool:
    return torch.allclose(
        torch.tensor(found, dtype=torch.float64), torch.as_tensor(expected).double(), atol=1e-9
    )


def test_every_column_is_the_library_s(room: Room, row: RowArithmetic) -> None:
    room.open("weights")
    for step, expected in (
        ("dots", row.dots),
        ("scale", row.scaled),
        ("mask", row.scores),
        ("exp", row.exps),
        ("weights", row.weights),
    ):
        assert _is_close(room.column(step), expected), step
    room.open("sum")
    room.page.get_by_text("All numbers").click()
    cells = room.page.locator("td[data-place]").all()
    assert _is_close([_number(cell.get_attribute("data-value")) for cell in cells], row.out)


def test_a_step_names_its_formula_shapes_and_source_line(room: Room) -> None:
    expect(room.page.locator("#step h2")).to_have_text("Dot products")
    expect(room.page.locator("[data-source]")).to_have_text(
        re.compile(r"glassformer/functional/reference\.py:\d+")
    )
    expect(room.page.locator("#step dl")).to_contain_text("[S, D] = [7, 64]")


def test_keys_step_forward_and_back_and_choose_numbers(room: Room) -> None:
    press, title = room.page.keyboard.press, room.page.locator("#step h2")
    room.page.locator("#step h2").click()
    press("ArrowRight")
    expect(title).to_have_text("Scaling")
    press("ArrowLeft")
    press("ArrowLeft")
    expect(title).to_have_text("Values")
    press("ArrowRight")
    press("ArrowDown")
    expect(room.page.locator(".line b").first).to_have_text(f"q·k[{KEY + 1}]")
    room.page.wait_for_url(re.compile(f"key={KEY + 1}"))


def test_playing_moves_on_and_pauses(room: Room) -> None:
    play = room.page.locator("#play")
    play.click()
    expect(play).to_have_text("Pause")
    expect(room.page.locator(".line b").first).not_to_have_text(f"q·k[{KEY}]")
    play.click()
    expect(play).to_have_text("Play")


def test_nothing_plays_where_the_system_asks_for_no_motion(chromium: Any, server: Server) -> None:
    page = chromium.new_page(reduced_motion="reduce")
    room = Room(page, server)
    expect(page.locator("#play")).to_have_count(0)
    expect(page.get_by_text("Your system asks for no motion")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#step h2")).to_have_text("Scaling")
    assert room.faults == []
    page.close()


def test_an_edit_changes_everything_below_and_survives_a_reload(
    room: Room, row: RowArithmetic
) -> None:
    dots = row.dots.clone()
    dots[KEY] = 99.5
    expected = RowArithmetic.of_dots(dots, scale=row.scale, allowed=row.allowed, v=row.v)
    room.type_number("99.5")
    expect(room.page.locator("#step output")).to_have_attribute("data-result", "99.5")
    room.open("weights")
    assert _is_close(room.column("weights"), expected.weights)
    room.page.wait_for_url(lambda url: "steps.edits" in url and "steps.at=weights" in url)
    room.page.reload()
    room.page.locator("#step h2").wait_for()
    assert _is_close(room.column("weights"), expected.weights)
    room.page.get_by_role("button", name="Undo changes").click()
    expect(room.page.get_by_role("button", name="Undo changes")).to_have_count(0)
    assert _is_close(room.column("weights"), row.weights)


def test_an_edit_of_the_stream_reaches_the_feed_forward_network(room: Room) -> None:
    room.open("ff_residual")
    before = room.result()
    room.open("x")
    room.type_number("3")
    room.open("ff_residual")
    expect(room.page.get_by_text("have been recomputed")).to_be_visible()
    assert abs(room.result() - before) > 1e-3


@pytest.mark.parametrize(
    ("step", "key", "mistakes"),
    [
        ("scale", KEY, {"dots": "The scale was forgotten.", "width": "You divided by D"}),
        ("mask", 6, {"zero": "A score of 0 still gets weight", "scaled": "mask was not applied"}),
        (
            "weights",
            KEY,
            {"exps": "divide it by the sum", "axis": "softmax over the queries"},
        ),
    ],
)
def test_answers_by_hand_are_checked_and_mistakes_named(
    room: Room, row: RowArithmetic, step: str, key: int, mistakes: dict[str, str]
) -> None:
    asked = ReadingRequest(model="writer", text=TEXT)
    site = Memory().reading(asked, lambda _: None).trace[SITE]
    columns = torch.stack([site.row(HEAD, i).scores for i in range(site.shape[2])]).softmax(0)
    wrong = {
        "dots": row.dots[key],
        "width": row.dots[key] / 64,
        "zero": 0.0,
        "scaled": row.scaled[key],
        "exps": row.exps[key],
        "axis": columns[QUERY, key],
    }
    truth = {"scale": row.scaled, "mask": row.scores, "weights": row.weights}[step][key]
    room.open(step)
    room.page.locator(f"tbody tr:has(td[data-key='{key}']) button").click()
    room.page.get_by_label("Compute by hand").check()
    expect(room.page.locator("#step output")).to_have_text("?")
    verdict = room.page.locator(".verdict")
    for name, sentence in mistakes.items():
        room.type_number(f"{float(wrong[name]):.6f}")
        expect(verdict).to_contain_text(sentence)
    room.type_number("no number")
    expect(verdict).to_contain_text("Type a number")
    room.type_number("123456")
    expect(verdict).to_contain_text("Not yet")
    room.type_number("-inf" if math.isinf(float(truth)) else f"{float(truth):.4f}")
    expect(verdict).to_contain_text("Right:")


def test_the_way_back_is_autograd_s(room: Room, row: RowArithmetic) -> None:
    assert row.q is not None and row.k is not None and row.v is not None
    q, k, v = (t.clone().requires_grad_() for t in (row.q, row.k, row.v))
    scores = (k @ q * row.scale).masked_fill(~row.allowed, -torch.inf)
    scores.retain_grad()
    (scores.softmax(-1) @ v)[5].backward()
    assert q.grad is not None and scores.grad is not None

    room.page.get_by_role("tab", name="Way back").click()
    expect(room.page.locator("#step h2")).to_have_text("Gradient of the output")
    slider = room.page.locator("#step svg[role=slider]")
    slider.focus()
    for _ in range(5):
        slider.press("ArrowRight")
    room.page.locator("#onehot").click()
    room.open("d_scores")
    assert _is_close(room.column("d_scores"), scores.grad)
    room.open("d_q")
    room.page.get_by_text("All numbers").click()
    cells = room.page.locator("td[data-place]").all()
    assert _is_close([_number(cell.get_attribute("data-value")) for cell in cells], q.grad)
    room.page.wait_for_url(lambda url: "steps.way=back" in url and "steps.at=d_q" in url)
    room.page.reload()
    expect(room.page.locator("#step h2")).to_have_text("Gradient of the query")


def test_cross_attention_follows_where_a_block_has_it(chromium: Any, server: Server) -> None:
    page = chromium.new_page()
    place = "room=steps&site=decoder.1.self&steps.at=residual&lang=en"
    asked = f"model=translator&to=fr&{place}&sentence={TEXT}"
    room = Room(page, server, asked)
    page.get_by_role("button", name="decoder.1.cross", exact=True).click()
    expect(page.locator(".where")).to_contain_text("decoder.1.cross")
    room.open("ff_hidden")
    assert room.faults == []
    page.close()


def test_in_chinese_and_on_a_phone(chromium: Any, server: Server, row: RowArithmetic) -> None:
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    room = Room(page, server, f"{ASKED}&lang=zh&steps.at=weights")
    expect(page.locator("#step h2")).to_have_text("softmax：权重")
    assert _is_close(room.column("weights"), row.weights)
    page.get_by_label("手算").check()
    room.type_number(f"{float(row.exps[KEY]):.6f}")
    expect(page.locator(".verdict")).to_contain_text("还要除以这一行的总和")
    room.type_number(f"{float(row.weights[KEY]):.4f}")
    expect(page.locator(".verdict")).to_contain_text("正确")
    page.get_by_role("tab", name="反向").click()
    expect(page.locator("#step h2")).to_have_text("输出的梯度")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert room.faults == []
    page.close()
