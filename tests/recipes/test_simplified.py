"""OpenCC itself, where it is installed, and the sentence where it is not."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from glassformer.errors import ConfigError
from glassformer.installation import install_command

sys.path.insert(0, str(Path(__file__).parents[2] / "recipes" / "data"))
sentences: ModuleType = importlib.import_module("sentences")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    sentences._converter.cache_clear()
    yield
    sentences._converter.cache_clear()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("我們認識你嗎?", "我们认识你吗？"),
        ("他頭髮乾了,已經發現了。", "他头发干了，已经发现了。"),
        ("门开著嗎？", "门开着吗？"),
        ("懂么？", "懂么？"),
    ],
)
def test_traditional_becomes_simplified(text: str, wanted: str) -> None:
    pytest.importorskip("opencc")
    assert sentences.chinese(text) == wanted


def test_without_opencc_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opencc", None)
    with pytest.raises(ConfigError, match=re.escape(install_command("recipes"))):
        sentences.simplified("漢字")
