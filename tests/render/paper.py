"""What a drawing looks like on plain paper: no colour, a known width."""

import io

from rich.console import Console


def lines(drawing, width=80):
    """The lines of a drawing, without blanks at their ends."""
    file = io.StringIO()
    Console(file=file, width=width, markup=False, emoji=False, highlight=False).print(drawing)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def drawn(docstring):
    """The drawing in a docstring: its indented lines after the first paragraph."""
    _, _, rest = docstring.partition("\n\n")
    return [line.removeprefix("    ").rstrip() for line in rest.rstrip().splitlines()]
