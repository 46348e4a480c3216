"""The coverage of a translator: made from its training pairs, the same whenever it is made."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

import glassformer as gf
from glassformer.text.coverage import FILE

sys.path.insert(0, str(Path(__file__).parents[2] / "recipes" / "data"))
script: ModuleType = importlib.import_module("translator_coverage")

PAIRS = {
    "zh": [
        ("Tom likes the café.", "Tom喜欢那家咖啡馆。"),
        ("He reads.", "他每天晚上都在家里看这本很厚的书，" * 9),
    ],
    "fr": [("Tom reads.", "Tom lit un livre."), ("The spider sleeps.", "L'araignée dort bien.")],
}
RECIPE = """
[[data.train]]
files = ["zh.en", "zh.zh"]
prefix = "<zh> "
[[data.train]]
files = ["fr.en", "fr.fr"]
prefix = "<fr> "
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for code, pairs in PAIRS.items():
        for name, column in (("en", 0), (code, 1)):
            lines = "".join(f"{pair[column]}\n" for pair in pairs)
            (tmp_path / f"{code}.{name}").write_text(lines, encoding="utf-8")
    (tmp_path / "recipe.toml").write_text(RECIPE)
    model = gf.load("translator")
    model.tokenizer.coverage = None
    gf.save(model, tmp_path / "model")
    return tmp_path


def make(folder: Path, recipe: str = "recipe.toml") -> int:
    arguments = [str(folder / recipe), "--data", str(folder), "--model", str(folder / "model")]
    return script.main(arguments)


def test_tokens_and_characters_are_those_of_the_pairs(folder: Path, capsys) -> None:
    assert not (folder / "model" / FILE).exists()
    assert make(folder) == 0
    assert "borrowed" in capsys.readouterr().out
    tokenizer = gf.load(folder / "model").tokenizer  # whose hashes fit
    coverage = tokenizer.coverage
    assert coverage.characters == set("".join(s for pairs in PAIRS.values() for s, _ in pairs))
    assert coverage.plain["’"] == "'"
    zh, fr = coverage.targets["zh"], coverage.targets["fr"]
    assert (zh.has_spaces, fr.has_spaces) == (False, True)
    assert [tokenizer.decode([token]) for token in zh.borrowed] == ["Tom"]
    assert fr.borrowed == ()
    for target, pairs in ((zh, PAIRS["zh"]), (fr, PAIRS["fr"])):
        seen = {token for _, text in pairs for token in tokenizer.encode(text)}
        assert seen == {*target.own, *target.borrowed}
    first = (folder / "model" / FILE).read_bytes()
    assert make(folder) == 0 and (folder / "model" / FILE).read_bytes() == first


def test_a_prefix_must_name_a_language(folder: Path, capsys) -> None:
    (folder / "other.toml").write_text(RECIPE.replace("<fr> ", "<de> "))
    assert make(folder, "other.toml") == 2
    assert "one of '<zh> ', '<fr> '; got '<de> '" in capsys.readouterr().err
