"""The shortlist of a translator: made from its training pairs, the same whenever it is made."""

import importlib
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import glassformer as gf
from glassformer.text.shortlist import FILE

sys.path.insert(0, str(Path(__file__).parents[2] / "recipes" / "data"))
script: ModuleType = importlib.import_module("translator_shortlist")

PAIRS = [
    ("The cat sleeps.", "Le chat dort."),
    ("The dog sleeps.", "Le chien dort."),
    ("The cat eats.", "Le chat mange."),
    ("A dog eats.", "Un chien mange."),
]
RECIPE = """
[[data.train]]
files = ["fr.en", "fr.fr"]
prefix = "<fr> "
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shortlist")
    for name, column in (("en", 0), ("fr", 1)):
        lines = "".join(f"{pair[column]}\n" for pair in PAIRS)
        (folder / f"fr.{name}").write_text(lines, encoding="utf-8")
    (folder / "recipe.toml").write_text(RECIPE)
    model = gf.load("translator")
    model.tokenizer.shortlist = None
    gf.save(model, folder / "model")
    return folder


def make(folder: Path, *more: str) -> int:
    paths = ["--data", str(folder), "--model", str(folder / "model")]
    return script.main([str(folder / "recipe.toml"), *paths, *more])


def test_words_go_with_their_translations(folder: Path, capsys) -> None:
    assert not (folder / "model" / FILE).exists()
    assert make(folder, "--best", "2", "--always", "3") == 0
    assert "fr: 3 frequent tokens" in capsys.readouterr().out
    model = gf.load(folder / "model")  # whose hashes fit
    tokenizer, target = model.tokenizer, model.tokenizer.shortlist.targets["fr"]

    def find(word: str) -> set[str]:
        (token,) = tokenizer.encode(word, add_special=False)
        low, high = target.offsets[token : token + 2]
        return {tokenizer.decode([t]).strip() for t in target.tokens[low:high].tolist()}

    assert "chat" in find(" cat") and "chien" in find(" dog")
    written = Counter(t for _, text in PAIRS for t in tokenizer.encode(text, add_special=False))
    assert min(written[t] for t in target.always) >= sorted(written.values())[-3]
    seen = tokenizer.encode("<fr> The dog sleeps.")
    assert target.select(seen)[tokenizer.encode(" chien dort.", add_special=False)].all()
    assert target.select([*seen, 7999]) is None  # a token of no pair
    first = (folder / "model" / FILE).read_bytes()
    assert make(folder, "--best", "2", "--always", "3") == 0
    assert (folder / "model" / FILE).read_bytes() == first


def test_alignment_is_ibm_model_1() -> None:
    """Against the textbook's loops over sentences, in which the last round is written out."""
    rng = np.random.default_rng(0)
    sources = [rng.integers(0, 5, rng.integers(1, 5)).tolist() for _ in range(9)]
    targets = [rng.integers(5, 9, rng.integers(1, 5)).tolist() for _ in range(9)]
    share = {(s, t): 1.0 for s in range(9) for t in range(9)}
    for _ in range(script.ROUNDS):
        counts = Counter[tuple[int, int]]()
        for source, target in zip(sources, targets, strict=True):
            for t in target:
                total = sum(share[s, t] for s in source)
                for s in source:
                    counts[s, t] += share[s, t] / total
        of_source = Counter[int]()
        for (s, _), n in counts.items():
            of_source[s] += n
        share = {pair: counts[pair] / of_source[pair[0]] for pair in share if counts[pair]}
    found = script.align(sources, targets, 9)
    assert {(s, t) for s, t, _ in zip(*found, strict=True)} == share.keys()
    for s, t, p in zip(*found, strict=True):
        assert abs(p - share[s, t]) < 1e-12


def test_a_mistake_is_one_sentence(folder: Path, capsys) -> None:
    assert make(folder, "--best", "0") == 2
    assert "--best and --most must be at least 1; got 0 and 200000." in capsys.readouterr().err
