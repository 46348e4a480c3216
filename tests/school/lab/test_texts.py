"""The texts of the experiments: both languages, the same keys and values, every one in use."""

import re
import string
from pathlib import Path

import pytest

from glassformer.languages import CODES
from glassformer.school.lab import NAMES
from glassformer.school.lab.texts import read_texts

HAN = re.compile(r"[\u4e00-\u9fff]")
PACKAGE = Path(__file__).parents[3] / "src" / "glassformer"
TEXTS, CODE = PACKAGE / "course/experiments", PACKAGE / "school/lab/experiments"


def flat(table, before=""):
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def placeholders(text):
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)


def test_there_is_a_text_for_every_experiment_and_no_other():
    files = {file.stem.replace("_", "-") for file in TEXTS.glob("*.toml")}
    codes = {file.stem.replace("_", "-") for file in CODE.glob("*.py")} - {"--init--"}
    assert files == codes == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_both_languages_say_the_same_things(name):
    texts = read_texts(name)
    assert tuple(texts) == CODES
    english, chinese = (dict(flat(texts[code])) for code in CODES)
    assert list(english) == list(chinese)
    assert {"title", "claim", "prediction", "explanation"} <= set(english)
    for key, text in english.items():
        assert placeholders(text) == placeholders(chinese[key]), key


@pytest.mark.parametrize("name", NAMES)
def test_each_text_is_in_its_language(name):
    texts = read_texts(name)
    for key, text in flat(texts["en"]):
        assert text.strip() == text and not HAN.search(text), key
    for key, text in flat(texts["zh"]):
        assert not re.search(r"[\u4e00-\u9fff] ?[,.;:!?]|[,;:!?][\u4e00-\u9fff]", text), key
        if not key.startswith("names."):  # a formula or a name is the same in both
            assert HAN.search(text), key
    for key in ("claim", "prediction", "explanation"):
        assert texts["en"][key].endswith(".") and texts["zh"][key].endswith("。")


@pytest.mark.parametrize("name", NAMES)
def test_every_name_and_check_is_used(name):
    code = (CODE / f"{name.replace('-', '_')}.py").read_text("utf-8")
    if "lab.panels import" in code:  # which names its texts itself
        code += (CODE.parent / "panels.py").read_text("utf-8")
    quoted = set(re.findall(r'"(\w+)"', code))
    made = set(re.findall(r'texts\(f"([^"]+)"', code))
    for key in read_texts(name)["en"]["names"]:
        suffixed = any(key.endswith(form.split("}")[-1]) for form in made if "}" in form)
        written = key in quoted or suffixed or name in ("errors", "warmup")
        assert written, key
    if name != "errors":
        assert set(read_texts(name)["en"]["checks"]) <= set(re.findall(r'Check\(\s*"(\w+)"', code))
