"""What the chapter on induction heads says and nothing else carries."""

from pathlib import Path

import torch

import glassformer
from glassformer.languages import Language
from glassformer.school.lab.catalogue import SECONDS
from glassformer.school.learn.pictures import draw

WRITER = Path(glassformer.__file__).parent / "models" / "pretrained" / "writer"


def test_the_picture_has_a_previous_token_head_and_an_induction_head():
    for text, heads in draw("induction", Language("en")).pictures:
        names = text.split()
        previous, induction = (each.values for each in heads.pictures)
        n = len(names)
        assert previous[1:].argmax(-1).tolist() == list(range(n - 1))
        for i in range(n):
            after = [j for j in range(1, i + 1) if names[j - 1] == names[i]]
            expected = torch.zeros(n)
            expected[after or list(range(i + 1))] = 1 / (len(after) or i + 1)
            assert torch.allclose(induction[i], expected, atol=1e-3), (text, i)


def test_the_writer_and_the_experiment_are_as_the_chapter_says():
    card = (WRITER / "CARD.md").read_text("utf-8")
    assert "Eighteen English books" in card and "5 layers" in card
    assert 30 <= SECONDS["induction"]["quick"] <= SECONDS["induction"]["full"] <= 90
