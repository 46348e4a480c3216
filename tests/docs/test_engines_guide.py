"""The guide to engines: both languages show the same code; `make test-vllm` runs it."""

import re
from pathlib import Path

from glassformer.tracing.engines.vllm.version import TESTED
from glassformer.tracing.engines.vllm.worker import EXTENSION

DOCS = Path(__file__).parents[2] / "docs"


def test_both_languages_show_the_same_code() -> None:
    english, chinese = ((DOCS / f"engines{end}.md").read_text("utf-8") for end in ("", ".zh"))
    blocks = [re.findall(r"```python\n(.*?)```", text, re.DOTALL) for text in (english, chinese)]
    shell = [[b for b in t.split("```")[1::2] if b[0] == "\n"] for t in (english, chinese)]
    assert shell[0][1:] == shell[1][1:]  # comments of the first are translated
    assert len(shell[0]) == 4
    assert len(blocks[0]) == 3
    assert blocks[0] == blocks[1]
    for text in (english, chinese):
        assert EXTENSION in text
        assert f"vLLM {TESTED}" in text
