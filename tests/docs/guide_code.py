"""Guides with Python sessions: what they print, and that both languages run the same code."""

import doctest
import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def check_outputs(name: str, *, least: int) -> None:
    """Run a guide from top to bottom; it must have more than `least` examples."""
    text = (DOCS / name).read_text("utf-8").replace("```", "")
    found = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    assert len(found.examples) > least
    runner = doctest.DocTestRunner()
    said: list[str] = []
    runner.run(found, out=said.append)
    assert not runner.failures, "".join(said)


def check_same_code(*names: str) -> None:
    """Blocks, and every example with its output: so one language is run for all of them."""
    texts = [(DOCS / name).read_text("utf-8") for name in names]
    first, *others = (re.findall(r"```python\n(.*?)```", text, re.DOTALL) for text in texts)
    assert first and all(other == first for other in others)
    parse = doctest.DocTestParser().get_examples
    runs = [[(e.source, e.want) for e in parse(text.replace("```", ""))] for text in texts]
    assert all(other == runs[0] for other in runs)
