"""The glossary, and every text in both languages held against it."""

import json
import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from glassformer.languages import CODES
from glassformer.languages.glossary import read_glossary

GLOSSARY = read_glossary()
OTHER_LANGUAGE = {"demo.next.language"}  # written in the language that it offers


def catalogue(code):
    content = files("glassformer.languages").joinpath(f"{code}.json").read_text("utf-8")
    return {key: text for key, text in json.loads(content).items() if key not in OTHER_LANGUAGE}


def flat(texts, path=()):
    for name, value in texts.items():
        if isinstance(value, dict):
            yield from flat(value, (*path, name))
        else:
            yield ".".join((*path, name)), value


def experiment_texts(code):
    folder = files("glassformer.course").joinpath("experiments")
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml"):
            yield from flat(tomllib.loads(file.read_text("utf-8"))[code], (file.name,))


def in_language(code, table, path=()):
    """The texts under a language's code in a nested table, each with its path."""
    pairs = table.items() if isinstance(table, dict) else enumerate(table)
    for name, value in pairs:
        if name == code and isinstance(value, str):
            yield ".".join(map(str, path)), value
        elif isinstance(value, dict | list):
            yield from in_language(code, value, (*path, name))


def course_texts(code):
    """Chapters without their code, tasks, questions and what is said of known mistakes."""
    course = Path(str(files("glassformer.course")))
    for file in [*course.glob(f"chapters/{code}/*.md"), *course.glob(f"exercises/*/{code}.md")]:
        prose = re.sub(r"```.*?```", "", file.read_text("utf-8"), flags=re.DOTALL)
        yield str(file.relative_to(course)), prose
    for file in [*course.glob("questions/*.toml"), *course.glob("exercises/*/*.toml")]:
        for name, text in in_language(code, tomllib.loads(file.read_text("utf-8"))):
            yield f"{file.relative_to(course)}: {name}", text


TEXTS = {code: catalogue(code) | dict(experiment_texts(code)) for code in CODES}


def missing(texts):
    """For each key the terms whose translation the Chinese text lacks."""
    found = {
        key: list(GLOSSARY.missing_terms(english, texts["zh"][key]))
        for key, english in texts["en"].items()
    }
    return {key: terms for key, terms in found.items() if terms}


def avoided(texts):
    found = {
        (code, key): GLOSSARY.avoided_words(text, code)
        for code in CODES
        for key, text in texts[code].items()
    }
    return {place: words for place, words in found.items() if words}


def test_the_chinese_texts_use_the_translations_of_the_glossary():
    assert missing(TEXTS) == {}


def test_no_text_uses_a_word_to_avoid():
    assert avoided(TEXTS) == {}


def test_the_course_uses_no_word_to_avoid():
    course = {code: dict(course_texts(code)) for code in CODES}
    assert len(course["en"]) == len(course["zh"]) > 800  # so that no folder is passed over
    assert avoided(course) == {}


def test_another_translation_is_found():
    keys = [key for key in TEXTS["en"] if key.startswith("demo.causal.")]
    texts = {code: {key: TEXTS[code][key] for key in keys} for code in CODES}
    texts["zh"]["demo.causal.title"] = "单向遮罩"
    assert missing(texts) == {"demo.causal.title": ["causal mask → 因果掩码"]}
    assert avoided(texts) == {("zh", "demo.causal.title"): ["遮罩"]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("There must be a text; nothing came.", ["came"]),
        ("rows apart by semicolons", ["apart by"]),
        ("After each → stands an operation.", ["stands"]),
        ("Two linear layers with a bend between them", ["a bend"]),
        ("a fresh name: came_apart, stands.here, --told and `comes`", []),
        ("Names the outcome.", []),
    ],
)
def test_private_words_are_found_and_names_are_not(text, words):
    assert GLOSSARY.avoided_words(text, "en") == words


@pytest.mark.parametrize(
    ("english", "chinese", "terms"),
    [
        ("beam search", "束搜索（beam search）", []),
        ("Beam search.", "集束查找", ["beam search → 束搜索"]),
        ("two queries", "两个问题", ["query → 查询"]),
        ("a causal mask, then a mask", "因果掩码", []),
        ("{query} of --head and decoder.head", "{query}", []),
        ("read by transformers", "transformers 能读", []),
    ],
)
def test_terms_are_found_in_prose(english, chinese, terms):
    assert list(GLOSSARY.missing_terms(english, chinese)) == terms


def test_every_term_is_written_once_and_explained():
    spelt = [word for term in GLOSSARY.terms for word in (term.en, *term.also_en)]
    assert sorted(spelt) == sorted(set(spelt))
    for term in GLOSSARY.terms:
        assert term.about_en.endswith(".") and term.about_zh.endswith("。"), term.en


def test_the_glossary_keeps_to_itself():
    about = {
        "en": {term.en: term.about_en for term in GLOSSARY.terms},
        "zh": {term.en: term.about_zh for term in GLOSSARY.terms},
    }
    assert avoided(about) == {}
