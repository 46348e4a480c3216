"""The rooms in a browser: where each is, and whatever its page complains of."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from training.small_runs import language, run
from workbench.served import Server

expect = pytest.importorskip("playwright.sync_api").expect

TEXT = "She opened the door and she"
SITE, HEAD, QUERY, KEY = "decoder.2.self", 3, 4, 1
WRITER = f"model=writer&sentence={quote(TEXT)}"
CELL = f"site={SITE}&head={HEAD}&query={QUERY}&key={KEY}"
CHANGE = quote(f"knockout({SITE}, queries={QUERY}, keys={KEY})")
RUN = "model=alphabet&training.heads=decoder.0.self:1"
OPEN = "model+decoder+decoder.0+decoder.0.self"
# Where it is, and what is there once it has been computed.
ROOMS = {
    "look": (f"{WRITER}&{CELL}", "[data-map]"),
    "steps": (f"{WRITER}&{CELL}&room=steps&steps.at=weights", "td[data-step=weights]"),
    "shapes": (f"{WRITER}&room=shapes&shapes.open={OPEN}", "[data-box='decoder.0.self.4']"),
    "touch": (f"{WRITER}&{CELL}&room=touch&change={CHANGE}", ".effect .along button"),
    "flow": (f"{WRITER}&{CELL}&room=flow", "#reasons-panel tbody th"),
    "atlas": (f"{WRITER}&{CELL}&room=atlas", "#weight"),
    "writing": (f"{WRITER}&room=writing&writing.max_new_tokens=8&writing.at=3", ".line button"),
    "training": (f"{RUN}&room=training", "[role=img]"),
    "learn": ("room=learn", ".chapters"),
}


def train_alphabet(folder: Path) -> Path:
    """The run that the room Training shows."""
    snapshots = {"every": 5, "text": "abcabc"}
    recipe = language(folder, until={"steps": 10}, show={"every": 5}, snapshots=snapshots)
    run(recipe, folder / "alphabet")
    return folder / "alphabet"


def listen(page: Any, server: Server) -> list[str]:
    """Errors of scripts, errors in the console and requests to others, as they happen."""
    faults: list[str] = []
    ours = (f"http://{server.host}/", f"blob:http://{server.host}/", "data:")
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: said.type == "error" and faults.append(said.text))
    page.on("request", lambda asked: asked.url.startswith(ours) or faults.append(asked.url))
    return faults


def enter(page: Any, place: str, content: str) -> None:
    """Go to a place by its fragment, and wait for what is there."""
    page.evaluate(f"location.hash = '{place}'")
    page.locator(content).first.wait_for()
    expect(page.locator("main[aria-busy=true], main [aria-busy=true]")).to_have_count(0)
