"""The pictures of the guide "From looking to knowing", in both languages: docs/pictures/.

    python docs/guide_pictures.py

A test draws them again and compares every name and token.
"""

import os
from pathlib import Path
from unittest import mock

import glassformer as gf

FOLDER = Path(__file__).parent / "pictures"
NAMES = {"en": ("lens.svg", "why.svg"), "zh": ("lens.zh.svg", "why.zh.svg")}


def draw(folder: Path) -> None:
    """The logit lens of the guide's translation, and why it wrote "chat"."""
    model = gf.load("translator")
    with gf.watch(model, residual=True) as trace:
        gf.translate(model, "The cat sat on the mat.", to="fr", beams=1)
    lens = gf.logit_lens(trace)
    why = gf.why(trace, " chat", against=" chien", position=1, top=5)
    for code, (grid, tree) in NAMES.items():
        with mock.patch.dict(os.environ, {"GLASSFORMER_LANG": code}):
            lens.figure(folder / grid)
            why.figure(folder / tree)


if __name__ == "__main__":
    draw(FOLDER)
