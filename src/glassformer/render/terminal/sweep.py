"""A sweep as a grid of signed effects, beside the roles of heads, with the largest as a list."""

import math
from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from glassformer.analysis import Role, Sweep
from glassformer.languages import Language
from glassformer.render.marks import HIDDEN, label, visible_token
from glassformer.render.paragraph import Paragraph
from glassformer.render.terminal.overview import find_roles
from glassformer.tracing import Trace

Head = tuple[str, int]  # a site, and the number of a head
Roles = Mapping[Head, str]

_CELL = 5  # cells of an effect, as +100 %
_MOST_LABEL = 8  # cells of a column's name
_MOST_ROWS = 40
_LEAST = 0.005  # effects below are shown as a dot
_HALF = 0.5  # of the largest effect
_MARKS = {"previous": "p", "duplicate": "d", "induction": "i", "copying": "c", "sink": "0"}


def list_roles(trace: Trace, sites: Sequence[str]) -> list[Role]:
    """The role of each head of these sites on the text of a trace; cross-attention has none."""
    return [
        role for name in sites for role in find_roles(trace, trace[name], 0) if role is not None
    ]


def draw_sweep(
    found: Sweep,
    heads: Iterable[Role] = (),
    *,
    width: int = 80,
    top: int = 5,
    language: Language,
) -> RenderableType:
    """The grid, the largest effects, and what they say; beside it the roles of `heads`."""
    say = language.say
    known = {role.layer_head: role.role for role in heads}
    names = {"clean": f"{found.clean:.3f}", "corrupted": f"{found.corrupted:.3f}"}
    grid, is_whole = _draw_grid(found, known, width, say("look.column.role"))
    notes = [Paragraph(_name_insight(found, language))]
    agreement = found.agreement
    if agreement is not None and agreement.worst.estimate is not None:
        said = say(
            "sweep.agreement",
            correlation=f"{agreement.correlation:.2f}",
            signs=f"{100 * agreement.signs:.0f}",
            place=_name_place(agreement.worst.row, agreement.worst.column),
            estimate=_percent(agreement.worst.estimate),
            effect=_percent(agreement.worst.effect),
        )
        notes.append(Paragraph(said))
    legend = {
        "gradient": say("sweep.legend.gradient"),
        "patch": say("sweep.legend.patch"),
        "both": say("sweep.legend.patch"),
    }[found.method]
    notes.append(Paragraph(say("sweep.legend.edges") if found.over == "edges" else legend, "dim"))
    if known:
        notes.append(Paragraph(say("sweep.roles"), style="dim"))
    if not is_whole:
        notes.append(Paragraph(say("sweep.some"), style="dim"))
    head = Paragraph(say("sweep.metric", measured=visible_token(found.measured), **names))
    return Group(head, *grid, _draw_top(found, known, top, language), *notes)


def _draw_grid(
    found: Sweep, known: Roles, width: int, role: str
) -> tuple[list[RenderableType], bool]:
    """Rows of places, columns of heads, positions or receivers; the largest, if not all fit."""
    sizes = found.effects.nan_to_num(0.0).abs()
    rows = _choose(sizes.amax(1).tolist(), _MOST_ROWS)
    names = [visible_token(found.rows[i]) for i in rows]
    side = max(map(cell_len, names)) + 2
    room = width - side
    has_roles = bool(known) and found.over == "heads"
    each = max(1, room // (_CELL + 2)) if has_roles else max(1, room // (_CELL + 1))
    if found.over == "heads":  # heads that do not fit continue below
        blocks = [
            list(range(start, min(start + each, len(found.columns))))
            for start in range(0, len(found.columns), each)
        ]
        columns = list(range(len(found.columns)))
    else:
        each = max(1, room // (_MOST_LABEL + 1)) if len(found.columns) > 1 else 1
        columns = _choose(sizes.amax(0).tolist(), each)
        blocks = [columns]
    is_whole = len(rows) == len(found.rows) and len(columns) == len(found.columns)
    drawn: list[RenderableType] = []
    for block in blocks:
        drawn += ["", _draw_block(found, rows, names, block, known if has_roles else {}, role)]
    return drawn, is_whole


def _draw_block(
    found: Sweep, rows: list[int], names: list[str], columns: list[int], known: Roles, role: str
) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    table.show_header = found.columns != ["all"]
    table.add_column("", no_wrap=True, style="dim")
    for j in columns:
        name = found.columns[j]
        name = name.partition(".")[2] or name if found.over == "edges" else name
        table.add_column(label(name, _MOST_LABEL), justify="right", no_wrap=True)
    if known:
        table.add_column(f" {role}", no_wrap=True)
    effects = found.effects.tolist()
    for i, name in zip(rows, names, strict=True):
        cells = [_draw_effect(effects[i][j]) for j in columns]
        marks = [_MARKS.get(known.get((found.rows[i], j), ""), HIDDEN) for j in columns]
        table.add_row(name, *cells, *([Text(" " + " ".join(marks), "cyan")] if known else []))
    return table


def _draw_effect(effect: float) -> Text:
    if math.isnan(effect):  # there is no such place
        return Text("")
    if abs(effect) < _LEAST:
        return Text(HIDDEN, style="dim")
    colour = "green" if effect > 0 else "red"
    return Text(f"{100 * effect:+.0f}", style=f"bold {colour}" if abs(effect) > 0.1 else colour)


def _draw_top(found: Sweep, known: Roles, n: int, language: Language) -> Table:
    say = language.say
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(say("sweep.column.place"), no_wrap=True)
    table.add_column(say("sweep.column.effect"), justify="right", no_wrap=True)
    if found.estimates is not None:
        table.add_column(say("sweep.column.estimate"), justify="right", no_wrap=True)
    if known:
        table.add_column(say("look.column.role"), no_wrap=True, style="dim")
    estimated = found.estimated_effects
    for row, column, effect in found.top(n):
        cells = [_name_place(row, column), _percent(effect)]
        if estimated is not None:
            at = found.rows.index(row), found.columns.index(column)
            cells.append(_percent(float(estimated[at])))
        if known:
            cells.append(_name_role(known.get((row, int(column)), ""), language))
        table.add_row(*cells)
    return table


def _name_insight(found: Sweep, language: Language) -> str:
    """What the largest effect says, and how many come near it; for borders, where it moves."""
    if found.over == "borders × positions":
        return _name_way(found, language)
    (row, column, effect), *_ = found.top(1)
    table = found.table
    near = sum(abs(each.effect) >= _HALF * abs(effect) for each in table)
    return language.say(
        "sweep.insight" if effect > 0 else "sweep.insight.away",
        place=_name_place(row, column),
        effect=f"{100 * abs(effect):.0f}",
        near=near,
        total=len(table),
    )


def _name_way(found: Sweep, language: Language) -> str:
    """At which position the difference enters, where it ends, and from where on it is there."""
    effects = found.effects
    first, last = int(effects[0].argmax()), int(effects[-1].argmax())
    below = (effects[:, last] < _HALF).nonzero().flatten().tolist()
    return language.say(
        "sweep.insight.borders",
        first=visible_token(found.columns[first]),
        last=visible_token(found.columns[last]),
        border=found.rows[below[-1] + 1 if below else 0],
    )


def _name_place(row: str, column: str) -> str:
    """decoder.2.self.3, decoder.2.mlp at a position, or a sender and its receiver."""
    if column == "all":
        return visible_token(row)
    if column.isdigit():
        return visible_token(f"{row}.{column}")
    return f"{visible_token(row)} {'→' if _is_receiver(column) else '@'} {visible_token(column)}"


def _is_receiver(column: str) -> bool:
    return not column[:1].isdigit()


def _name_role(role: str, language: Language) -> str:
    say = language.say
    named = {
        "previous": say("look.role.previous"),
        "duplicate": say("look.role.duplicate"),
        "induction": say("look.role.induction"),
        "copying": say("look.role.copying"),
        "sink": say("look.role.sink"),
        "next": say("look.role.next"),
        "self": say("look.role.self"),
        "delimiter": say("look.role.delimiter"),
        "positional": say("look.role.positional"),
        "broad": say("look.role.broad"),
        "distant": say("look.role.distant"),
        "mixed": say("look.role.mixed"),
    }
    return named.get(role, "")


def _choose(sizes: list[float], most: int) -> list[int]:
    """The numbers of the largest, in order; all, if there are no more."""
    chosen = sorted(range(len(sizes)), key=lambda i: -sizes[i])[:most]
    return sorted(chosen)


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %"
