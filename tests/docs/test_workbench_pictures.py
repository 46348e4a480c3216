"""The guide of the workbench shows every room in both languages, light and dark."""

import re
import runpy
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api")
ROOT = Path(__file__).parents[2]
ROOMS = re.findall(r"name: '(\w+)'", (ROOT / "web/src/bench/rooms.ts").read_text("utf-8"))


@pytest.mark.parametrize(("guide", "lang"), [("workbench.md", "en"), ("workbench.zh.md", "zh")])
def test_pictures_of_every_room(guide: str, lang: str) -> None:
    taken = runpy.run_path(str(ROOT / "docs/workbench_pictures.py"))["ROOMS"]
    assert {*ROOMS} <= {*taken} and len(ROOMS) == 9
    text = (ROOT / "docs" / guide).read_text("utf-8")
    for room in taken:
        for theme in ("light", "dark"):
            path = f"pictures/workbench/{room}.{lang}.{theme}.webp"
            assert f"]({path})" in text
            assert (ROOT / "docs" / path).read_bytes()[8:12] == b"WEBP"


def test_the_readme_moves() -> None:
    moving = (ROOT / "docs/pictures/workbench.webp").read_bytes()
    assert moving[8:12] == b"WEBP" and b"ANIM" in moving[:64] and len(moving) < 1_000_000
    for name in ("README.md", "README.zh.md"):
        assert "](docs/pictures/workbench.webp)" in (ROOT / name).read_text("utf-8")
