"""The pictures of the workbench, taken from the real application in Chromium: docs/pictures/.

    python docs/workbench_pictures.py             every room, light and dark, in both languages
    python docs/workbench_pictures.py --moving    and the README's moving picture

It trains a small language model for the room Training, and records a long text for the Atlas:
about five minutes for all rooms. Pictures change where fonts or Chromium do; look at each of them
before they are committed.
"""

import argparse
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import torch
from PIL import Image
from playwright.sync_api import sync_playwright

import glassformer as gf

FOLDER = Path(__file__).parent / "pictures"
CHAPTERS = Path(gf.__file__).parent / "course" / "chapters" / "en"
WIDTH, HEIGHT = 1280, 800
QUALITY = 82  # of WebP
TOKENS = 2000  # of the long text

SENTENCE = "model=translator&to=fr&sentence=" + quote("The cat sat on the mat.")
LINE = "model=writer&sentence=" + quote("In the beginning God created the heaven and the")
KING = "model=writer&sentence=" + quote("The king sat upon his")
CELL = "site=decoder.1.cross&head=1&query=1&key=2"
REMOVED = quote("ablate(decoder.3.self, head=1)")
ABOVE = "site=decoder.4.self&head=1&query=8"  # what reads the stream that lacks it
# Where each room is entered, and what is there once it has been computed.
ROOMS = {
    "look": (f"{SENTENCE}&{CELL}", "[data-map]"),
    "compare": (
        f"{SENTENCE}&{CELL}&look.with=1&look.with.sentence=" + quote("The dog sat on the mat."),
        "#view-panel canvas",
    ),
    "steps": (f"{SENTENCE}&{CELL}&room=steps&steps.at=weights", "td[data-step=weights]"),
    "shapes": (f"{SENTENCE}&room=shapes&shapes.open=model+decoder+decoder.0", "[data-box]"),
    "touch": (f"{LINE}&{ABOVE}&room=touch&change={REMOVED}", ".effect .along button"),
    "flow": (f"{LINE}&query=8&room=flow", "#reasons-panel tbody th"),
    "why": (f"{KING}&query=4&room=flow&flow.view=why", ".verdict strong"),
    "writing": (f"{LINE}&room=writing&writing.max_new_tokens=12&writing.at=4", ".line button"),
    "atlas": ("model=long.trace&room=atlas", "#weight"),
    "training": ("model=run&room=training&training.heads=decoder.0.self:1", "[role=img]"),
    "learn": ("room=learn", ".chapters"),
    "chapter": ("room=learn&learn.open=chapter:weights", "figure input[type=number]"),
}
MOVING = ("look", "steps", "touch", "flow", "atlas")  # rooms of the README's picture


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--moving", action="store_true")
    parser.add_argument("--only", nargs="*", help="rooms", default=list(ROOMS), choices=ROOMS)
    args = parser.parse_args()
    shown = {*args.only, *(MOVING if args.moving else ())}
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), shown) as address,
        sync_playwright() as play,
    ):
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = play.chromium.launch(executable_path=chromium)
        size = {"width": WIDTH, "height": HEIGHT}
        page = browser.new_page(viewport=size)
        page.goto(address)
        page.locator("[data-map]").first.wait_for(timeout=120_000)
        (FOLDER / "workbench").mkdir(parents=True, exist_ok=True)
        for room, lang, theme in product(args.only, ("en", "zh"), ("light", "dark")):
            take(page, room, lang, theme)
        if args.moving:
            save_moving(page, FOLDER / "workbench.webp")
        browser.close()
    return 0


def take(page: Any, room: str, lang: str, theme: str) -> None:
    place, content = ROOMS[room]
    enter(page, f"{place}&lang={lang}&theme={theme}", content)
    if room == "why":
        page.locator("#reasons-panel").evaluate("part => part.scrollIntoView()")
    path = FOLDER / "workbench" / f"{room}.{lang}.{theme}.webp"
    picture(page).save(path, quality=QUALITY, method=6)


def save_moving(page: Any, path: Path) -> None:
    """A sentence, its head and a cell, the steps behind it, the head removed, the stream, a map."""
    usual = "lang=en&theme=light"
    frames: list[tuple[Image.Image, int]] = []

    def show(milliseconds: int) -> None:
        frames.append((picture(page), milliseconds))

    enter(page, f"{SENTENCE}&{usual}", "[data-map]")
    show(1800)
    box = page.locator("#sentence")
    box.fill("")
    for word in ("The", "old", "man", "reads", "a", "long", "book."):
        box.press_sequentially(f"{word} ")
        show(220)
    box.press("Enter")
    page.locator("ol >> text=The old man reads").first.wait_for()
    rest(page)
    show(2200)
    for room in MOVING:
        place, content = ROOMS[room]
        enter(page, f"{place}&{usual}", content)
        show(2400)
    first, *others = [image for image, _ in frames]
    first.save(
        path,
        save_all=True,
        append_images=others,
        duration=[milliseconds for _, milliseconds in frames],
        loop=0,
        quality=QUALITY,
        method=6,
    )


def enter(page: Any, place: str, content: str) -> None:
    page.evaluate("place => { location.hash = place; }", place)
    page.locator(content).first.wait_for(timeout=120_000)
    rest(page)


def rest(page: Any) -> None:
    """Wait until nothing is being computed, and all of it is drawn."""
    page.wait_for_function(
        "() => document.querySelector('main[aria-busy=true], main [aria-busy=true]') === null"
    )
    page.wait_for_timeout(1500)  # the last stroke of a map, and maps of all heads


def picture(page: Any) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


@contextmanager
def serving(folder: Path, rooms: set[str]) -> Iterator[str]:
    """A workbench with what these rooms open: a trained run, a long text."""
    paths = []
    if "training" in rooms:
        paths.append(str(train(folder)))
    if "atlas" in rooms:
        paths.append(str(record(folder)))
    command = [sys.executable, "-m", "glassformer", "serve", "--port", "0", "--no-browser"]
    # The progress of whoever takes the pictures is no part of them.
    alone = os.environ | {"XDG_DATA_HOME": str(folder / "data")}
    with subprocess.Popen(
        [*command, *paths], stdout=subprocess.PIPE, text=True, env=alone
    ) as server:
        try:
            assert server.stdout is not None
            line = next(line for line in server.stdout if "#token=" in line)
            yield line[line.index("http://") :].strip() + f"&{SENTENCE}"
        finally:
            server.terminate()


def train(folder: Path) -> Path:
    """A language model of characters on the chapters, with pictures of its heads on the way."""
    text = folder / "chapters.txt"
    text.write_text("\n".join(path.read_text("utf-8") for path in sorted(CHAPTERS.glob("*.md"))))
    settings = [
        "until.steps=120",
        "show.every=5",
        "evaluate.every_steps=40",
        "snapshots.every=10",
        'snapshots.text="the model reads the text and the model writes"',
    ]
    options = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-m", "glassformer", "train", "--text", str(text)]
    run = folder / "run"
    subprocess.run([*command, "--out", str(run), *options], check=True)
    return run


def record(folder: Path) -> Path:
    """A chapter read by the writer, as long as it reads."""
    model = gf.load("writer", dtype=torch.float32)
    text = "\n".join(each.read_text("utf-8") for each in sorted(CHAPTERS.glob("*.md"))[:4])
    tokens = model.tokenizer.encode(text)[:TOKENS]
    with gf.watch(model) as trace, torch.no_grad():
        model(torch.tensor([tokens]))
    path = folder / "long.trace"
    trace.save(path)
    return path


if __name__ == "__main__":
    sys.exit(main())
