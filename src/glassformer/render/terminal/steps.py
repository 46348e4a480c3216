"""One query's attention in five steps, with every number and the tokens as labels."""

import math
from collections.abc import Sequence

from rich.bar import Bar
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from glassformer.errors import ShapeError
from glassformer.functional import RowArithmetic
from glassformer.languages import Language
from glassformer.render.marks import HIDDEN, label
from glassformer.render.numbers import format_number, format_numbers, format_weights
from glassformer.render.terminal.legend import draw_legend

_MOST_KEYS = 40  # in the table; of more, the largest weights
_MOST_TERMS = 8  # in the weighted sum
_MOST_LABEL = 16  # cells of a token
_MOST_WIDTH = 4  # numbers shown of a value vector


def draw_steps(row: RowArithmetic, tokens: Sequence[str], *, language: Language) -> RenderableType:
    """Dot product → scaling → mask → softmax → weighted sum: a table, a legend, and the sum.

    key  1 q · k  2 ÷ 8  3 mask  4 exp  weight
    The     12.5   1.56    1.56   0.10    0.06  █
    cat     30.8   3.85    3.85   1.00    0.63  ██████████
    sat     25.1   3.14    3.14   0.49    0.31  █████
    """
    if len(tokens) != len(row.dots):
        raise ShapeError(
            f"The steps of a row need one token for each key; got {len(tokens)} tokens for "
            f"{len(row.dots)} keys."
        )
    parts: list[RenderableType] = [_table(row, tokens, language)]
    n_left = len(tokens) - _MOST_KEYS
    if n_left > 0:
        rest = format_number(float(row.weights.sort().values[:n_left].sum()))
        parts.append(Text(language.say("step.more", n=n_left, rest=rest), style="dim"))
    parts += ["", _legend(row, language)]
    if row.v is not None:
        parts += ["", Padding(_sum(row, tokens, language), (0, 0, 0, 3))]
    return Group(*parts)


def _table(row: RowArithmetic, tokens: Sequence[str], language: Language) -> Table:
    say = language.say
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(say("column.key"), no_wrap=True)
    heads = [
        "1 q · k",
        f"2 {_factor(row.scale)}{'' if row.softcap is None else ', softcap'}",
        f"3 {say('step.mask')}",
        "4 exp",
        say("column.weight"),
    ]
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", max_width=16)  # bars
    kept = _strongest(row.weights.tolist(), _MOST_KEYS)
    allowed, weights = row.allowed[kept].tolist(), row.weights[kept].tolist()
    columns = [
        format_numbers(row.dots[kept].tolist()),
        format_numbers(row.capped[kept].tolist()),
        format_numbers(row.scores[kept].tolist()),
        format_weights(row.exps[kept].tolist()),
        format_weights(weights),
    ]
    names = [label(tokens[i], _MOST_LABEL) for i in kept]
    for name, numbers, is_open, weight in zip(
        names, zip(*columns, strict=True), allowed, weights, strict=True
    ):
        shown = numbers if is_open else (*numbers[:3], HIDDEN, HIDDEN)
        table.add_row(name, *shown, Bar(1.0, 0.0, weight, color="cyan"))
    return table


def _strongest(weights: list[float], most: int) -> list[int]:
    """The indices of the largest weights, in text order."""
    return sorted(sorted(range(len(weights)), key=lambda i: -weights[i])[:most])


def _legend(row: RowArithmetic, language: Language) -> Table:
    say = language.say
    n_hidden = int((~row.allowed).sum())
    mask = say("step.mask.some", n=n_hidden) if n_hidden else say("step.mask.none")
    if bool(row.bias.any()):
        mask = f"{say('step.mask.bias')}{mask}"
    if row.total:
        softmax = say(
            "step.softmax.note", largest=format_number(row.largest), total=format_number(row.total)
        )
    else:
        softmax = say("step.softmax.empty")
    notes = [
        (say("step.dots"), say("step.dots.note")),
        (say("step.scale"), _scale_note(row, language)),
        (say("step.mask"), mask),
        (say("step.softmax"), softmax),
        (say("step.sum"), say("step.sum.none" if row.v is None else "step.sum.note")),
    ]
    return draw_legend((f"{i} {name}", note) for i, (name, note) in enumerate(notes, start=1))


def _scale_note(row: RowArithmetic, language: Language) -> str:
    root = _root(row.scale)
    if row.scale == 1:
        note = language.say("step.scale.one")
    elif root is None:
        note = language.say("step.scale.factor", factor=f"{row.scale:.4g}")
    else:
        note = language.say("step.scale.root", square=root, root=f"{math.sqrt(root):.4g}")
    if row.softcap is not None:
        note += language.say("step.scale.softcap", softcap=f"{row.softcap:.4g}")
    return note


def _factor(scale: float) -> str:
    return f"× {scale:.4g}" if _root(scale) is None else f"÷ {math.sqrt(_root(scale) or 1):.4g}"


def _root(scale: float) -> int | None:
    # The integer whose square root the scale divides by, if there is one: 1/8 divides by √64.
    if scale <= 0:
        return None
    square = scale**-2
    return round(square) if round(square) >= 1 and abs(square - round(square)) < 1e-6 else None


def _sum(row: RowArithmetic, tokens: Sequence[str], language: Language) -> Table:
    assert row.v is not None and row.out is not None
    weights = row.weights.tolist()
    shown = [i for i in _strongest(weights, _MOST_TERMS) if weights[i] > 0]
    *vectors, out = _brackets([*row.v[shown].tolist(), row.out.tolist()])
    written_shown = format_weights([weights[i] for i in shown])

    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    for n, (i, weight, vector) in enumerate(zip(shown, written_shown, vectors, strict=True)):
        table.add_row(
            "+" if n else "", weight, "·", vector, Text(" ") + label(tokens[i], _MOST_LABEL)
        )
    n_left = sum(w > 0 for w in weights) - len(shown)
    if n_left:
        rest = format_number(sum(weights) - sum(weights[i] for i in shown))
        table.add_row("+", "…", "", language.say("step.sum.more", n=n_left, rest=rest))
    table.add_row("=", "", "", out, style="bold")
    return table


def _brackets(vectors: list[list[float]]) -> list[str]:
    """Vectors with aligned numbers, truncated if they are long."""
    columns = [format_numbers(column) for column in zip(*vectors, strict=True)]
    kept = columns[:_MOST_WIDTH] + [["…"] * len(vectors)] * (len(columns) > _MOST_WIDTH)
    widths = [max(map(len, column)) for column in kept]
    rows = zip(*kept, strict=True)
    return [f"[{'  '.join(map(str.rjust, row, widths))}]" for row in rows]
