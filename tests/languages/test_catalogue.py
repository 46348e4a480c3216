import ast
import json
import re
import string
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


def literals():
    """Every string in the sources that has the form of a key."""
    first_words = "|".join(sorted({key.split(".")[0] for key in KEYS}))
    form = re.compile(rf"({first_words})(\.[a-z]+)+")
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and form.fullmatch(str(node.value)):
                yield node.value


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


@pytest.mark.parametrize("key", KEYS)
def test_both_languages_fill_in_the_same_values(key):
    english, chinese = (placeholders(CATALOGUES[code][key]) for code in CODES)
    assert sorted(map(str, english)) == sorted(map(str, chinese))
    for name, form, conversion in english:
        # A web page fills in names; it knows nothing of Python's format codes.
        assert re.fullmatch("[a-z]+", name) and not form and conversion is None


@pytest.mark.parametrize("key", KEYS)
def test_each_text_is_in_its_language(key):
    english, chinese = (CATALOGUES[code][key] for code in CODES)
    assert english.strip() and chinese.strip()
    if key in OTHER_LANGUAGE:
        english, chinese = chinese, english
    assert not HAN.search(english)
    assert HAN.search(chinese) or key in SAME_IN_BOTH or not re.search("[A-Za-z]", english)


@pytest.mark.parametrize("key", KEYS)
def test_chinese_has_full_width_punctuation(key):
    chinese = CATALOGUES["zh"][key]
    assert not re.search(r"[\u4e00-\u9fff] ?[,.;:!?]|[,;:!?][\u4e00-\u9fff]", chinese)


def test_every_key_in_the_sources_exists():
    assert set(said()) | set(literals()) <= set(KEYS)


def test_every_key_is_used():
    # web/tests holds those of the workbench against its sources.
    assert {key for key in KEYS if not key.startswith("bench.")} == set(literals())


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
