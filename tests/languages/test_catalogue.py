import ast
import json
import re
import string
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

import glassformer
from glassformer.errors import ConfigError
from glassformer.languages import CODES, Language, text

SOURCES = sorted(Path(glassformer.__file__).parent.rglob("*.py"))
HAN = re.compile(r"[\u4e00-\u9fff]")
# The line that offers the other language is written in the other language.
OTHER_LANGUAGE = {"demo.next.language"}
SAME_IN_BOTH = {
    "step.softmax",
    *(f"learn.picture.cachesize.{kind}" for kind in ("mha", "mqa", "mla")),
    "learn.picture.expert.one",
}


def pairs(code):
    content = files("glassformer.languages").joinpath(f"{code}.json").read_text("utf-8")
    return json.loads(content, object_pairs_hook=list)


CATALOGUES = {code: dict(pairs(code)) for code in CODES}
KEYS = sorted(CATALOGUES["en"])


def placeholders(message):
    return [parts[1:] for parts in string.Formatter().parse(message) if parts[1] is not None]


@cache
def literals():
    """Every string in the sources that has the form of a key."""
    first_words = "|".join(sorted({key.split(".")[0] for key in KEYS}))
    form = re.compile(rf"({first_words})(\.[a-z]+)+")
    trees = (ast.parse(source.read_text("utf-8")) for source in SOURCES)
    nodes = (node for tree in trees for node in ast.walk(tree))
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    return {value for value in constants if form.fullmatch(str(value))}


def said():
    """Every key that is written where a text is asked for."""
    asked = re.compile(r"""\b(?:say|text|_error)\(\s*["']([^"']+)["']""")
    for source in SOURCES:
        yield from asked.findall(source.read_text("utf-8"))


def test_no_key_is_written_twice():
    for code in CODES:
        keys = [key for key, _ in pairs(code)]
        assert sorted(keys) == sorted(set(keys))


def test_both_languages_have_the_same_keys_in_the_same_order():
    assert list(CATALOGUES["en"]) == list(CATALOGUES["zh"])


def fill_in_alike(key):
    english, chinese = (placeholders(CATALOGUES[code][key]) for code in CODES)
    # A web page fills in names; it knows nothing of Python's format codes.
    plain = all(
        re.fullmatch("[a-z]+", name) and not form and conversion is None
        for name, form, conversion in english
    )
    return sorted(map(str, english)) == sorted(map(str, chinese)) and plain


def test_both_languages_fill_in_the_same_values():
    assert [key for key in KEYS if not fill_in_alike(key)] == []


def is_in_its_language(key):
    english, chinese = (CATALOGUES[code][key] for code in CODES)
    if key in OTHER_LANGUAGE:
        english, chinese = chinese, english
    has_no_words = key in SAME_IN_BOTH or not re.search("[A-Za-z]", english)
    return not HAN.search(english) and bool(HAN.search(chinese) or has_no_words)


def test_each_text_is_in_its_language():
    assert [key for key in KEYS if not all(CATALOGUES[code][key].strip() for code in CODES)] == []
    assert [key for key in KEYS if not is_in_its_language(key)] == []


def test_chinese_has_full_width_punctuation():
    half_width = re.compile(r"[\u4e00-\u9fff] ?[,.;:!?]|[,;:!?][\u4e00-\u9fff]")
    assert [key for key in KEYS if half_width.search(CATALOGUES["zh"][key])] == []


def test_every_key_in_the_sources_exists():
    assert set(said()) | literals() <= set(KEYS)


def test_every_key_is_used():
    # web/tests holds those of the workbench against its sources.
    assert {key for key in KEYS if not key.startswith("bench.")} == literals()


def test_values_are_filled_in():
    assert Language("en").say("mask.sequence", n=1, total=2) == "sequence 1 of 2"
    assert text("mask.sequence", "zh", n=1, total=2) == "第 1 个序列，共 2 个"


@pytest.mark.parametrize("code", ["fr", "", "EN", "zh_CN"])
def test_an_unknown_language_is_named_with_the_known_ones(code):
    message = rf"en \(English\) or zh \(中文\); got {code!r}.*--lang"
    with pytest.raises(ConfigError, match=message):
        Language(code)


def test_the_package_imports_nothing_of_glassformer_but_errors():
    folder = Path(glassformer.__file__).parent / "languages"
    imported = re.findall(
        r"^(?:from|import) (glassformer\S*)",
        "\n".join(file.read_text("utf-8") for file in folder.glob("*.py")),
        re.MULTILINE,
    )
    assert all(
        name == "glassformer.errors" or name.startswith("glassformer.languages.")
        for name in imported
    )
