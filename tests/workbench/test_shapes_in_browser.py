"""Shapes in a browser: boxes unfold, letters light up, sizes change the numbers."""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from glassformer.models.checkpoints import load_config
from glassformer.models.description import describe
from glassformer.models.shapes import shapes
from glassformer.workbench.memory import Memory
from glassformer.workbench.wire.requests import ReadingRequest
from workbench.browsing import listen
from workbench.foreign_folder import save_foreign
from workbench.served import TOKEN, Server, serving

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser

TEXT = "The cat sat on the mat."
ASKED = f"model=writer&room=shapes&lang=en&sentence={TEXT}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("models") / "neox"
    if find_spec("transformers"):
        save_foreign(folder)
    paths = [folder] if folder.is_dir() else []
    with serving("glassformer.workbench.desk", *paths, size=1) as found:
        yield found


class Room:
    """A page on which Shapes is open."""

    def __init__(self, page: Any, server: Server, asked: str = ASKED) -> None:
        self.page, self.faults = page, listen(page, server)
        page.goto(f"http://{server.host}/#token={TOKEN}&{asked}")
        self.box("model").wait_for()

    def box(self, name: str) -> Any:
        return self.page.locator(f"[data-box='{name}']")


@pytest.fixture
def room(chromium: Any, server: Server) -> Iterator[Room]:
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    found = Room(page, server)
    yield found
    assert found.faults == []
    page.close()


def test_the_numbers_are_the_library_s_and_follow_the_length(room: Room) -> None:
    known = describe(load_config("writer"))
    expect(room.box("model")).to_have_attribute("data-parameters", str(known.parameters))
    asked = ReadingRequest(model="writer", text=TEXT)
    own = Memory().reading(asked, lambda _: None).trace.run.texts["tokens"].tokens.shape[1]
    entry = room.page.locator("[data-size=length]")
    expect(entry).to_have_value(str(own))
    for length in (own, 300):
        if length != own:
            entry.fill(str(length))
            entry.press("Enter")
        per_token = known.flops_per_token + length * known.attention_flops_per_key
        expect(room.box("model")).to_have_attribute("data-flops", str(length * per_token))
    room.page.wait_for_url(re.compile("shapes.length=300"))
    room.page.reload()
    expect(entry).to_have_value("300")
    room.page.get_by_role("button", name="As in the model").click()
    expect(entry).to_have_value(str(own))


def test_boxes_unfold_by_enter_and_fold_by_escape(room: Room) -> None:
    room.box("model").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter"):  # decoder, embedding, block
        room.page.keyboard.press(key)
    expect(room.box("decoder.0.self")).to_be_visible()
    room.page.keyboard.press("ArrowDown")
    expect(room.box("decoder.0.self")).to_be_focused()
    room.page.keyboard.press("Enter")
    scores = room.box("decoder.0.self.4")
    expect(scores).to_contain_text("scores q · k")
    scores.click()
    expect(scores).to_contain_text("einsum: D is summed over")
    trace = shapes(load_config("writer"), batch=1, length=7)
    step = next(s for s in trace.steps if s.operation == "scores")
    expect(scores).to_contain_text(str(list(step.outputs[0].numbers)))
    room.page.keyboard.press("Escape")
    expect(scores).not_to_contain_text("einsum")
    room.page.keyboard.press("Escape")
    expect(scores).to_have_count(0)
    expect(room.box("decoder.0.self")).to_be_focused()


def test_a_letter_lights_up_everywhere(room: Room) -> None:
    room.page.goto(f"{room.page.url}&shapes.open=model+decoder+decoder.0+decoder.0.self")
    room.box("decoder.0.self.4").wait_for()
    lit = room.page.locator(".letter.lit")
    expect(lit).to_have_count(0)
    room.page.get_by_role("button", name=re.compile("^H = 4")).focus()
    expect(lit.first).to_be_visible()
    assert set(lit.all_text_contents()) == {"H"} and lit.count() >= 5
    room.box("decoder.0.self.4").locator("[data-letter=L]").first.hover()
    expect(lit.first).to_have_text("L")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("heads", "3", "3 heads cannot share a width of 256: choose a divisor of 256"),
        ("kv_heads", "3", "3 key-value heads cannot serve 4 heads alike"),
        ("layers", "0", "layers must be a whole number from 1 to 128; got 0."),
    ],
)
def test_sizes_that_do_not_fit_are_named(room: Room, field: str, value: str, said: str) -> None:
    before = room.box("model").get_attribute("data-flops")
    entry = room.page.locator(f"[data-size={field}]")
    entry.fill(value)
    entry.press("Enter")
    expect(room.page.locator("#shapes-fault")).to_contain_text(said)
    expect(entry).to_have_attribute("aria-invalid", "true")
    expect(room.box("model")).to_have_attribute("data-flops", before)
    entry.fill("2")
    entry.press("Enter")
    expect(room.page.locator("#shapes-fault")).to_be_empty()


def test_another_architecture_and_its_list(room: Room) -> None:
    room.page.get_by_label("Architecture").select_option("gpt-2")
    expect(room.box("model")).to_have_attribute(
        "data-parameters", str(describe("gpt-2").parameters)
    )
    room.page.locator("#shapes-text").click()
    expect(room.page.locator("#shapes table")).to_contain_text("124,439,808")
    expect(room.page.locator("#shapes table")).to_contain_text("Block 0 … 11 × 12")


def test_a_model_of_transformers_is_measured(chromium: Any, server: Server) -> None:
    pytest.importorskip("transformers")
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    faults = listen(page, server)
    asked = "model=neox&sentence=the cat sat on&room=shapes&lang=en"
    page.goto(f"http://{server.host}/#token={TOKEN}&{asked}")
    page.locator("#measured-sites").wait_for(timeout=60_000)  # transformers loads slowly
    assert page.locator("#measured-sites td").all_inner_texts() == ["(1, 3, 4, 8)"] * 6
    expect(page.locator("#measured-modules")).to_contain_text("GPTNeoXLayer × 2")
    expect(page.locator("[data-size]")).to_have_count(0)
    page.get_by_label("Architecture").select_option("gpt-2")
    page.locator("[data-box=model]").wait_for()
    page.get_by_label("Architecture").select_option("")
    page.locator("#measured-modules-title").wait_for()
    assert "7,384 in all" in page.inner_text("#measured-modules-title")
    assert faults == []
    page.close()


def test_in_chinese_and_on_a_phone(chromium: Any, server: Server) -> None:
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    room = Room(page, server, "model=translator&to=fr&room=shapes&lang=zh&theme=dark")
    expect(room.box("encoder")).to_contain_text("编码器")
    page.locator("[data-size=heads]").fill("7")
    page.locator("[data-size=heads]").press("Enter")
    expect(page.locator("#shapes-fault")).to_contain_text("不能平分给 7 个头")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert room.faults == []
    page.close()
