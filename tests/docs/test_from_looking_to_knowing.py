"""The guide from looking to knowing: what it prints is what the code prints, in both languages."""

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NAMES = ("from-looking-to-knowing.md", "from-looking-to-knowing.zh.md")


@pytest.mark.parametrize("name", NAMES)
def test_every_output_is_what_the_code_prints(name: str) -> None:
    text = (DOCS / name).read_text("utf-8").replace("```", "")
    found = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    assert len(found.examples) > 15
    runner = doctest.DocTestRunner()
    said: list[str] = []
    runner.run(found, out=said.append)
    assert not runner.failures, "".join(said)


def test_both_languages_run_the_same_code() -> None:
    english, chinese = ((DOCS / name).read_text("utf-8") for name in NAMES)
    blocks = [re.findall(r"```python\n(.*?)```", text, re.DOTALL) for text in (english, chinese)]
    assert blocks[0] == blocks[1]
