"""Where commands write: standard output for what was asked for, standard error for what failed."""

import io
import re
import sys
from typing import IO, Any, cast

from rich.console import Console

LEAST_COLUMNS, MOST_COLUMNS = 48, 100  # below the least, numbers would lose their digits


def terminal() -> Console:
    """A console for results: calm in a wide window, free of colour codes where it is a pipe."""
    file = sys.stdout if sys.stdout.isatty() else cast(IO[str], _Trimmed(sys.stdout))
    console = Console(file=file, markup=False, emoji=False, highlight=False)
    console.width = max(LEAST_COLUMNS, min(console.width, MOST_COLUMNS))
    return console


class _Trimmed:
    """A stream without blanks at the ends of lines: rich fills lines up, files need no filling."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        return self.stream.write(re.sub(" +$", "", text, flags=re.MULTILINE))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def complain(error: Exception | str) -> None:
    """One line on standard error; text from a file must not control the terminal."""
    words = " ".join(str(error).split())
    sentence = "".join(c if c.isprintable() else repr(c)[1:-1] for c in words)
    sys.stderr.write(f"glassformer: {sentence}\n")


def write_any_character() -> None:
    """Replace what an old terminal's encoding lacks (■, 我) instead of failing over it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
