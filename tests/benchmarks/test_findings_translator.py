"""The alignment that heads are held against, and the scores of what is removed."""

import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    """The modules of the benchmark import each other by their bare names."""
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[2] / "benchmarks"), *sys.path])


def test_model_1_learns_a_dictionary():
    from word_alignment import Model1

    pairs = [([1, 2], [11, 12]), ([1, 3], [13, 11]), ([2, 3], [12, 13]), ([3], [13])]
    aligner = Model1(pairs, rounds=20)
    assert aligner.align([3, 1, 2], [11, 12, 13], least=0.5) == {0: 1, 1: 2, 2: 0}
    assert aligner.align([1, 1, 3], [11, 13], least=0.5) == {1: 2}  # which 1 it is, nobody knows


def test_differences_of_bleu_are_paired():
    from findings_translator import Bleu, Texts

    words = [f"the {a} sat on the {b} today" for a in ("cat", "dog", "hen") for b in ("mat", "log")]
    bleu = Bleu(Texts(words, [[each] for each in words]), "13a", 1)
    assert bleu.score(words) == pytest.approx(100)
    assert bleu.describe(words, words) == "100.0, +0.0 (95 %: +0.0 … +0.0)"
    worse = ["the cow ran", *words[1:]]
    assert bleu.score(worse) < 99


def test_ranks_are_correlated():
    from findings_translator import correlate_ranks

    assert correlate_ranks([3.0, 2.0, 1.0]) == 1.0
    assert correlate_ranks([1.0, 2.0, 3.0]) == -1.0
