"""The logit lens as a table: layers from the last down to the first, positions side by side."""

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from glassformer.analysis import AffineLens, Lens
from glassformer.languages import Language
from glassformer.render.charts.lens import select_borders
from glassformer.render.marks import label, visible_token
from glassformer.render.paragraph import Paragraph

_CELL = 9  # cells of a token
_GAP = 2  # cells between columns
_REST = 28  # cells of the first column and the last
_STYLES = ((0.5, "bold green"), (0.1, "green"), (0.02, ""), (0.0, "dim"))


def draw_lens(
    lens: Lens,
    *,
    width: int,
    parts: bool = False,
    language: Language,
) -> RenderableType:
    """The most probable token at every border and position; the last positions, if not all fit.

    Without `parts`, one row for each block; with them, one for each part of it.
    """
    say = language.say
    rows = select_borders(lens, parts=parts)
    shown = _choose_positions(lens, rows, width - _REST)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(say("lens.column.border"), no_wrap=True, style="dim")
    for position in shown:
        table.add_column(label(lens.positions[position], _CELL), no_wrap=True)
    table.add_column(say("lens.column.entropy"), justify="right", style="dim", no_wrap=True)
    for row in reversed(rows):
        cells = [_draw_cell(lens, row, i) for i in shown]
        entropy = f"{float(lens.entropy[row, shown[-1]]):.1f}"
        table.add_row(lens.borders[row], *cells, entropy)
    last = shown[-1]
    if lens.pooled is not None and lens.pooled in shown:
        last = lens.pooled
    is_encoder = lens.borders[0].startswith("encoder")
    insight = say(
        "lens.settled.encoder" if is_encoder else "lens.settled",
        position=visible_token(lens.positions[last]),
        token=visible_token(lens.labels[-1][last][0]),
        share=f"{100 * float(lens.probabilities[-1, last, 0]):.0f}",
        border=lens.borders[lens.settled(last)],
    )
    basis = {
        None: say("lens.legend.plain"),
        "tuned": say("lens.legend.tuned"),
        "jacobian": say("lens.legend.jacobian"),
    }[lens.kind]
    notes = [Paragraph(insight), Paragraph(say("lens.legend", basis=basis), style="dim")]
    if lens.pooled is not None:
        read = visible_token(lens.positions[lens.pooled])
        notes.append(Paragraph(say("lens.pooled", position=read), style="dim"))
    if len(shown) < len(lens.positions):
        left_out = say("lens.some", n=len(shown), total=len(lens.positions))
        notes.append(Paragraph(left_out, style="dim"))
    return Group(table, *notes)


def draw_divergences(lens: AffineLens, *, language: Language) -> RenderableType:
    """How far the logit lens and this one are from the end, border by border."""
    say = language.say
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(say("lens.column.border"), no_wrap=True, style="dim")
    name = {"tuned": say("lens.column.tuned"), "jacobian": say("lens.column.jacobian")}[lens.kind]
    table.add_column(say("lens.column.plain"), justify="right")
    table.add_column(name, justify="right")
    rows = list(zip(lens.borders, lens.plain, lens.mapped, strict=True))
    for border, plain, mapped in reversed(rows):
        table.add_row(border, f"{plain:.3f}", f"{mapped:.3f}")
    return Group(table, Paragraph(say("lens.divergence"), style="dim"))


def _choose_positions(lens: Lens, rows: list[int], width: int) -> range:
    """The last positions, as many as fit."""
    n = len(lens.positions)
    first = n - 1
    for position in reversed(range(n)):
        cells = [lens.positions[position], *(lens.labels[row][position][0] for row in rows)]
        width -= max(label(cell, _CELL).cell_len for cell in cells) + _GAP
        if width < 0:
            break
        first = position
    return range(first, n)


def _draw_cell(lens: Lens, row: int, position: int) -> Text:
    probability = float(lens.probabilities[row, position, 0])
    cell = label(lens.labels[row][position][0], _CELL)
    cell.stylize(next(style for least, style in _STYLES if probability >= least))
    return cell
