"""Running text in either language, with lines broken as its readers expect."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.text import Text

from glassformer.languages import Language

# Chinese has no spaces to break at: a line may end after any character, but not before closing
# punctuation nor after opening punctuation.
_CLOSING = "，。；：！？、）》」』”’…"
_OPENING = "（《「『“‘"


@dataclass(frozen=True)
class Paragraph:
    """A text that wraps at the available width."""

    text: str
    style: str = ""

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        for line in wrap_text(self.text, options.max_width):
            yield Text(line, style=self.style, no_wrap=True, overflow="ignore")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        widest = max((cell_len(piece.strip()) for piece in _pieces(self.text)), default=1)
        return Measurement(widest, max(cell_len(self.text), 1)).with_maximum(options.max_width)


def join_sentences(sentences: Iterable[str], language: Language) -> str:
    """Join nonempty sentences; Chinese has no space between them."""
    between = "" if language.code == "zh" else " "
    return between.join(sentence for sentence in sentences if sentence)


def wrap_text(text: str, width: int) -> list[str]:
    """Wrap a text into lines of at most `width` cells, except for single words that are wider.

    >>> wrap_text("权重相加，得到输出。", 8)
    ['权重相', '加，得到', '输出。']
    """
    lines = [""]
    for piece in _pieces(text):
        if lines[-1] and cell_len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece if lines[-1] else piece.lstrip()
    return [line.rstrip() for line in lines]


def _pieces(text: str) -> Iterator[str]:
    start = 0
    for i in range(1, len(text)):
        before, after = text[i - 1], text[i]
        if before == " " != after:
            may_break = True
        else:
            wide = cell_len(before) == 2 or cell_len(after) == 2
            may_break = wide and after not in _CLOSING + " " and before not in _OPENING
        if may_break:
            yield text[start:i]
            start = i
    yield text[start:]
