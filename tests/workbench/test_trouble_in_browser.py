"""When something is wrong, the page says so in a sentence, offers a way on, and loses nothing."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import quote

import pytest

from glassformer.languages import CODES, Language
from workbench.browsing import listen
from workbench.served import TOKEN, Server, serving

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
JOBS = "glassformer.workbench.desk"
WRITER = f"model=writer&sentence={quote('She opened the door and she')}"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(JOBS, size=1) as found:
        yield found


@pytest.fixture
def tab(chromium: Any) -> Iterator[Any]:
    context = chromium.new_context(viewport={"width": 1280, "height": 720}, locale="en-GB")
    context.set_default_timeout(30_000)
    yield context.new_page()
    context.close()


def visit(tab: Any, server: Server, place: str) -> None:
    tab.goto(f"http://{server.host}/#token={TOKEN}&{place}")


def test_a_server_that_has_ended_is_named_and_found_again(tab: Any) -> None:
    """In every room that asks while the server is away; the next server has the same port."""
    said = {code: Language(code).say("bench.error.silent") for code in CODES}
    rooms = {
        "steps": "#step h2",
        "touch": ".effect .along button",
        "flow": ".bank button",
        "atlas": "#weight",
        "writing": ".line button",
        "shapes": "[data-box=model]",
        "learn": ".chapters",
    }
    with ExitStack() as stack:
        server = stack.enter_context(serving(JOBS, size=1))
        for name, content in rooms.items():  # each is loaded while there is a server
            visit(tab, server, f"{WRITER}&room={name}")
            tab.locator(content).first.wait_for()
    alert, again = tab.locator("div[role=alert]"), tab.locator("#again")
    for n, name in enumerate(rooms):
        code = CODES[n % 2]
        tab.evaluate(f"location.hash = 'model=writer&sentence=We+{n}&room={name}&lang={code}'")
        expect(alert).to_contain_text(said[code])
        expect(again).to_have_text(Language(code).say("bench.again"))
        again.click()
        expect(alert).to_contain_text(said[code])
    with serving(JOBS, size=1, port=server.port):
        faults = listen(tab, server)
        for n, (name, content) in enumerate(rooms.items()):
            tab.evaluate(f"location.hash = 'model=writer&sentence=We+{n}&room={name}'")
            if n == 0:
                again.click()
            tab.locator(content).first.wait_for()
            expect(tab.locator("[role=alert]")).to_have_count(0)
        assert faults == []


def test_another_start_of_the_server_asks_for_its_address(tab: Any, server: Server) -> None:
    tab.goto(f"http://{server.host}/#token=of-yesterday&{WRITER}&lang=zh")
    alert = tab.locator("div[role=alert]")
    expect(alert).to_contain_text(Language("zh").say("bench.error.token"))
    other = tab.context.new_page()
    visit(other, server, "room=shapes")
    other.locator("[data-box=model]").wait_for()
    tab.locator("#again").click()
    tab.locator("#result").wait_for()
    expect(alert).to_have_count(0)


def test_a_killed_worker_is_named_and_the_job_can_be_tried_again(tab: Any, server: Server) -> None:
    visit(tab, server, WRITER)
    tab.locator("#result").wait_for()
    faults = listen(tab, server)
    (worker,) = server.pool.process_ids
    os.kill(worker, signal.SIGSTOP)  # so that the next job cannot end before its worker does
    tab.locator("#sentence").fill("He closed the window")
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("button", name="Cancel")).to_be_visible()
    os.kill(worker, signal.SIGKILL)
    alert = tab.locator("div[role=alert]")
    expect(alert).to_contain_text("another one has taken its place")
    expect(tab.locator("ol >> text=She opened the door and she")).to_be_visible()
    tab.locator("#again").click()
    read = tab.locator("ol >> text=He closed the window")
    expect(read).to_be_visible(timeout=60_000)  # a new process begins by importing torch
    expect(alert).to_have_count(0)
    assert faults == []


@pytest.mark.parametrize("code", CODES)
def test_links_that_name_what_is_not_there(tab: Any, server: Server, code: str) -> None:
    say = Language(code).say
    faults = listen(tab, server)
    status, result = tab.locator("div[role=status]"), tab.locator("#result")
    visit(tab, server, f"lang={code}&model=nobody")
    expect(status).to_have_text(say("bench.missing.model", value="nobody", instead="translator"))
    result.wait_for()
    tab.evaluate(f"location.hash = '{WRITER}&lang={code}&site=decoder.1.self&head=99'")
    expect(status).to_have_text(say("bench.missing.head", value="99", instead="0"))
    expect(tab.locator("#head")).to_have_value("0")
    tab.evaluate(f"location.hash = '{WRITER}&lang={code}&site=decoder.99.self&query=9999&key=999'")
    found = say("bench.missing.site", value="decoder.99.self", instead="@").split("@")[0]
    expect(status).to_contain_text(found)
    result.wait_for()
    tab.locator("#site").select_option("decoder.1.self")
    expect(status).to_have_count(0)
    assert faults == []


def test_malformed_links_open_what_they_can(tab: Any, server: Server) -> None:
    faults = listen(tab, server)
    visit(tab, server, "%E0%A4%A&&==&room=nowhere&lang=xx&theme=pink&head=-1&query=1e9&=&a.b=%")
    tab.locator("#result").wait_for()
    places = {
        "room=steps&steps.at=nothing&steps.edits=%7B&steps.way=up": "#step h2",
        "room=shapes&shapes.length=many&shapes.open=nothing&shapes.heads=-3": "[data-box=model]",
        "room=touch&touch.at=-7": ".effect .along button",
        "room=flow&flow.border=77&flow.view=sideways&flow.token=x": ".bank button",
        "room=atlas&atlas.view=a_b_c&atlas.pool=7&atlas.scale=none&atlas.curve=": "#weight",
        "room=writing&writing.at=999&writing.max_new_tokens=3&writing.kept=x": "main",
        "room=writing&writing.temperature=hot&writing.max_new_tokens=3": "main",
        "room=training&training.heads=:::,": "pre",
        "room=learn&learn.open=nothing": ".chapters",
        "room=learn&learn.open=chapter:nothing": "[role=alert]",
        "room=learn&learn.open=exercise:nothing": "[role=alert]",
    }
    for place, content in places.items():
        tab.evaluate(f"location.hash = '{WRITER}&{place}'")
        tab.locator(content).first.wait_for()
        expect(tab.locator("main[aria-busy=true]")).to_have_count(0)
        assert faults == [], place


@pytest.mark.parametrize("code", CODES)
def test_a_sentence_that_is_empty_or_too_long(tab: Any, server: Server, code: str) -> None:
    faults = listen(tab, server)
    visit(tab, server, f"model=writer&lang={code}&sentence=")
    expect(tab.locator("main")).to_have_text(Language(code).say("bench.nothing"))
    box = tab.locator("#sentence")
    box.fill("boat " * 5_000)
    box.press("Enter")
    expect(tab.locator("div[role=alert]")).to_have_text(re.compile(r".*\d.*"))
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box.fill("The boat")
    box.press("Enter")
    tab.locator("#result").wait_for()
    expect(tab.locator("[role=alert]")).to_have_count(0)
    box.fill("")
    box.press("Enter")
    expect(tab.locator("main")).to_have_text(Language(code).say("bench.nothing"))
    tab.go_back()
    tab.locator("#result").wait_for()
    assert faults == []
