"""The pictures of the guide are what its code draws today."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def words(svg: Path) -> list[str]:
    """The texts of a picture, without numbers: their last digit depends on the machine."""
    found = re.findall(r"<text[^>]*>([^<]*)</text>", svg.read_text("utf-8"))
    return [text for text in found if not re.fullmatch(r"[+−]?[\d.e−]+", text)]


def test_the_pictures_of_the_guide_are_drawn_by_its_script(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    script = runpy.run_path(str(ROOT / "docs/guide_pictures.py"))
    script["draw"](tmp_path)
    for code, names in script["NAMES"].items():
        guide = "from-looking-to-knowing" + ("" if code == "en" else f".{code}") + ".md"
        for name in names:
            assert f"](pictures/{name})" in (ROOT / "docs" / guide).read_text("utf-8")
            if code == "en":  # Chinese needs a font that not every machine has
                assert words(tmp_path / name) == words(ROOT / "docs/pictures" / name)
                assert len(words(tmp_path / name)) > 15
