"""Small models that come with glassformer: a folder each, whose card tells what it is.

    reader        fills gaps in English sentences
    storyteller   writes short stories in simple English, from any beginning
    translator    writes English sentences in Chinese and French
    writer        continues an English text in the manner of old books

`gf.load("reader")` reads them. They are stored in float16 and loaded in float32.
"""

from pathlib import Path

HERE = Path(__file__).parent


def list_pretrained() -> dict[str, Path]:
    """The folders of the pretrained models, by name.

    >>> sorted(list_pretrained())
    ['reader', 'storyteller', 'translator', 'writer']
    """
    return {path.parent.name: path.parent for path in sorted(HERE.glob("*/config.json"))}


def card(name: str) -> str:
    """What there is to know about a model: data, licence, recipe, scores, limits."""
    return (list_pretrained()[name] / "CARD.md").read_text(encoding="utf-8")
