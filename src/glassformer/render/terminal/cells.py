"""A grid of numbers in the terminal: texts where cells carry them, else shades with a sign."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from glassformer.languages import Language
from glassformer.render.chart import Cells, Number
from glassformer.render.marks import isolate_direction, shade, visible_token
from glassformer.render.numbers import MINUS, format_brief
from glassformer.render.paragraph import Paragraph

_MOST_CELLS = 32  # rows and columns of shades
_MOST_TEXT = 9  # cells of a text
_MOST_SIDE = 24  # cells of a row's name


def draw_cells(panel: Cells, width: int, language: Language) -> Iterator[RenderableType]:
    """Draw all cells, or evenly spaced ones where they do not fit."""
    side = min(_MOST_SIDE, width // 3, max(map(cell_len, panel.row_names), default=0))
    room = width - side - 2 * bool(side)
    yield Text(f"{panel.rows} ↓   {panel.columns} →", style="dim")
    rows = _space_indices(len(panel.values), 10**6 if panel.texts else _MOST_CELLS)
    if panel.texts:
        yield from _draw_texts(panel, rows, side, room, language)
    else:
        columns = _space_indices(len(panel.values[0]), min(_MOST_CELLS, room // 2))
        largest = panel.largest or 1.0
        for i in rows:
            cells = "".join(_mark(panel, panel.values[i][j], largest) for j in columns)
            line = Text(_pad(panel, i, side), no_wrap=True, overflow="ignore")
            yield line.append(cells.rstrip(), style="cyan")
    if panel.is_signed and not panel.texts:
        yield Paragraph(language.say("chart.shades.signed", most=format_brief(panel.largest)))
    elif not panel.texts:
        yield Paragraph(language.say("lab.shades", most=format_brief(panel.largest)))


def _draw_texts(
    panel: Cells, rows: Sequence[int], side: int, room: int, language: Language
) -> Iterator[RenderableType]:
    """The last columns that fit, and how many those are."""
    n = len(panel.values[0])
    names = panel.column_names or tuple(str(j) for j in range(n))
    shown: list[tuple[int, int]] = []  # columns and their widths
    for j in reversed(range(n)):
        texts = [names[j], *(panel.texts[i][j] for i in rows)]
        wide = max(cell_len(visible_token(text, _MOST_TEXT)) for text in texts)
        if room < wide:
            break
        room -= wide + 2
        shown.insert(0, (j, wide))
    heads = "  ".join(_fit(names[j], wide) for j, wide in shown)
    yield Text(" " * (side + 2 * bool(side)) + heads.rstrip(), style="dim", no_wrap=True)
    for i in rows:
        cells = "  ".join(_fit(panel.texts[i][j], wide) for j, wide in shown)
        line = f"{_pad(panel, i, side)}{cells}".rstrip()
        yield Text(line, no_wrap=True, overflow="ignore")
    if len(shown) < n:
        yield Paragraph(language.say("chart.some", n=len(shown), total=n), style="dim")


def _mark(panel: Cells, value: Number | None, largest: Number) -> str:
    """Two characters: a shade twice, or with its sign."""
    if value is None:
        return "  "
    if not value:
        return "· "
    mark = shade(abs(value) / largest)
    if not panel.is_signed:
        return mark * 2 if value > 0 else "· "
    return mark + ("+" if value > 0 else MINUS)


def _pad(panel: Cells, row: int, side: int) -> str:
    return f"{_fit(panel.row_names[row], side)}  " if side else ""


def _fit(text: str, cells: int) -> str:
    text = visible_token(text, cells)
    return isolate_direction(text) + " " * (cells - cell_len(text))


def _space_indices(n: int, most: int) -> list[int]:
    """All indices, or evenly spaced ones if there are more than `most`."""
    return list(range(n)) if n <= most else [round(i * (n - 1) / (most - 1)) for i in range(most)]
