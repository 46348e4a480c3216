"""The shapes of a model as tables: operation by operation, in letters and in numbers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from glassformer.languages import Language
from glassformer.models.shapes import Section, Shape, ShapeStep, ShapeTrace
from glassformer.render.paragraph import Paragraph, wrap_text
from glassformer.render.terminal.legend import draw_legend

NEVER_HELD, BIASED = "*", "+b"

_LETTERS = {
    "B": "shapes.letter.b",
    "L": "shapes.letter.l",
    "S": "shapes.letter.s",
    "C": "shapes.letter.c",
    "H": "shapes.letter.h",
    "K": "shapes.letter.k",
    "D": "shapes.letter.d",
    "E": "shapes.letter.e",
    "P": "shapes.letter.p",
    "R": "shapes.letter.r",
    "Q": "shapes.letter.q",
    "F": "shapes.letter.f",
    "N": "shapes.letter.n",
    "k": "shapes.letter.active",
    "M": "shapes.letter.m",
    "V": "shapes.letter.v",
    "max_len": "shapes.letter.places",
}
_STACKS = {"encoder": "models.family.encoder", "decoder": "models.family.decoder"}
_PARTS = {
    "self": "shapes.part.self",
    "cross": "shapes.part.cross",
    "feed_forward": "shapes.part.feedforward",
}
_SECTIONS = {
    "embedding": "shapes.section.embedding",
    "final": "shapes.section.final",
    "head": "shapes.section.head",
    "classifier": "shapes.section.classifier",
}
_OPERATIONS = {
    "waves": "shapes.operation.waves",
    "angles": "shapes.operation.angles",
    "split": "shapes.operation.split",
    "rotate": "shapes.operation.rotate",
    "scores": "shapes.operation.scores",
    "bias": "shapes.operation.bias",
    "softmax": "step.softmax",
    "attend": "shapes.operation.attend",
    "merge": "shapes.operation.merge",
    "residual": "shapes.operation.residual",
    "halve": "shapes.operation.halve",
    "pick": "shapes.operation.pick",
    "divide": "shapes.operation.divide",
    "join": "shapes.operation.join",
    "route": "shapes.operation.route",
    "sum": "shapes.operation.sum",
}
_ADDED = {
    "positions": "shapes.added.positions",
    "token_types": "shapes.added.types",
    "shared": "shapes.added.shared",
}
_INDENT, _GAP, _WIDEST_OPERATION = 2, 2, 23

Row = tuple[str, ...]  # operation or input, tensor, its shape twice, the shape of a weight twice


def draw_shapes(trace: ShapeTrace, *, language: Language) -> RenderableType:
    """Draw every step; identical blocks are drawn once and counted.

      x                              [B,L,C]         [2,10,768]
      → LayerNorm                    [B,L,C]         [2,10,768]    [C] +b
      → linear qkv                   [B,L,(H+2K)·D]  [2,10,2304]   [(H+2K)·D,C] +b
      → split into heads   q         [B,H,L,D]       [2,12,10,64]
                           k         [B,K,L,D]       [2,12,10,64]
                           v         [B,K,L,D]       [2,12,10,64]

    A narrow window omits the parameter columns; a still narrower one puts operations on lines of
    their own.
    """
    return _Drawing(trace, language)


@dataclass(frozen=True)
class _Drawing:
    trace: ShapeTrace
    language: Language

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        say = self.language.say
        yield Text(say("shapes.title", name=self.trace.name), style="bold")
        yield Paragraph(say("shapes.intro"), style="dim")
        yield ""
        yield draw_legend(self._letters())
        yield ""
        head = (
            say("shapes.column.operation"),
            say("shapes.column.tensor"),
            say("shapes.column.letters"),
            say("shapes.column.numbers"),
            say("shapes.column.parameters"),
            "",
        )
        parts = [(*titles, self._rows(steps)) for titles, steps in self._parts()]
        widths = _widths([head, *(row for *_, rows in parts for row in rows)], options.max_width)
        yield _table([head], widths, style="dim")
        for section, part, rows in parts:
            yield ""
            if section:
                yield Rule(Text(section, style="bold"), align="left", style="dim")
            if part:
                yield Text(part, style="cyan")
            yield _table(rows, widths)
        yield ""
        yield draw_legend(self._notes(with_weights=len(widths) > 4))

    def _letters(self) -> Iterator[tuple[str, str]]:
        say, sizes = self.language.say, self.trace.sizes
        for letter, size in sizes.items():
            meaning = say(_LETTERS[letter])
            if letter == "K" and sizes["H"] > size:
                meaning = say("shapes.letter.kgrouped", n=sizes["H"] // size)
            yield f"{letter} = {size}", meaning

    def _parts(self) -> Iterator[tuple[tuple[str, str], list[ShapeStep]]]:
        """The titles of each section and of its parts, and their steps."""
        for section in self.trace.sections():
            title = self._title(section)
            for site in dict.fromkeys(step.site for step in section.steps):
                part = site.rpartition(".")[2]
                named = f"{self.language.say(_PARTS[part])} · {site}" if part in _PARTS else ""
                yield (title, named), [step for step in section.steps if step.site == site]
                title = ""

    def _title(self, section: Section) -> str:
        say = self.language.say
        stack = say(_STACKS[section.stack]) if section.stack in _STACKS else section.stack
        if section.part == "block":
            n = len(section.blocks)
            key = "shapes.section.block" if n == 1 else "shapes.section.blocks"
            return say(key, stack=stack, blocks=_ranges(section.blocks), n=n)
        if section.part in _SECTIONS:
            return say(_SECTIONS[section.part], stack=stack)
        return section.part

    def _rows(self, steps: Sequence[ShapeStep]) -> list[Row]:
        """Each external input once, and the results of each operation beside it."""
        rows: list[Row] = []
        made = {shape.step for step in steps for shape in step.outputs}
        seen: set[tuple[str, int | None]] = set()
        for step in steps:
            for shape in step.inputs:
                if shape.step not in made and (shape.name, shape.step) not in seen:
                    rows.append((shape.name, "", *_format_both(shape), "", ""))
                    seen.add((shape.name, shape.step))
            operation, weight = f"→ {self._operation(step)}", self._weight(step)
            for shape in step.outputs:
                name = "" if shape.name == "x" else shape.name
                name += "" if step.held else NEVER_HELD
                rows.append((operation, name, *_format_both(shape), *weight))
                operation, weight = "", ("", "")
        return rows

    def _operation(self, step: ShapeStep) -> str:
        say = self.language.say
        if step.operation in _OPERATIONS:
            return say(_OPERATIONS[step.operation])
        if step.operation == "linear":
            return say("shapes.operation.linear", name=_owner(step))
        if step.operation == "lookup":
            return say("shapes.operation.lookup", name=_owner(step))
        if step.operation == "mask":
            return say("shapes.operation.mask", mask=step.note)
        if step.operation == "add":
            return f"+ {say(_ADDED[step.note]) if step.note in _ADDED else step.note}"
        if step.operation == "multiply":
            return f"× {step.inputs[-1].name}"
        if step.operation == "scale":
            return f"× {_factor(float(step.note))}"
        return step.note or step.operation

    def _weight(self, step: ShapeStep) -> tuple[str, str]:
        if not step.parameters:
            return "", ""
        letters, numbers = _format_both(step.parameters[0])
        tied = f" {self.language.say('shapes.tied')}" if step.note == "tied" else ""
        biased = f" {BIASED}" if len(step.parameters) > 1 else ""
        return f"{letters}{tied}{biased}", numbers

    def _notes(self, *, with_weights: bool) -> Iterator[tuple[str, str]]:
        say, steps = self.language.say, self.trace.steps
        if any(not step.held for step in steps):
            yield NEVER_HELD, say("shapes.note.held")
        if with_weights and any(len(step.parameters) > 1 for step in steps):
            yield BIASED, say("shapes.note.bias")
        if with_weights and any(step.note == "tied" for step in steps):
            yield say("shapes.tied"), say("shapes.note.tied")


def _format_both(shape: Shape) -> tuple[str, str]:
    return f"[{','.join(shape.letters)}]", f"[{','.join(map(str, shape.numbers))}]"


def _owner(step: ShapeStep) -> str:
    """The last name of the module that owns the matrix."""
    return step.parameters[0].name.split(".")[-2]


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers in order, with three or more consecutive ones joined.

    >>> _ranges([0, 1, 2, 5, 6])
    '0 … 2, 5, 6'
    """
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][-1] == n - 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ", ".join(
        f"{run[0]} … {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs
    )


def _factor(number: float) -> str:
    """A number, as a square root if it is one.

    >>> _factor(512**0.5), _factor(0.25)
    ('√512', '0.25')
    """
    square = round(number**2)
    is_root = not number.is_integer() and math.isclose(number**2, square, rel_tol=1e-9)
    return f"√{square}" if is_root else f"{number:.4g}"


def _widths(rows: Sequence[Row], most: int) -> list[int]:
    """The widths of six columns, or of as many as fit; with three, operations have own lines."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for n in (6, 5, 4):
        kept = [min(widths[0], _WIDEST_OPERATION - _INDENT), *widths[1:n]]
        if _INDENT + sum(kept) + _GAP * (n - 1) <= most:
            return kept
    tensors = 2 + max(cell_len(_tensor(row)) for row in rows)
    return [tensors, widths[2], most - _INDENT - tensors - widths[2] - 2 * _GAP]


def _table(rows: Sequence[Row], widths: Sequence[int], *, style: str = "") -> RenderableType:
    """Rows in columns of these widths; with three columns, operations have lines of their own."""
    parts: list[RenderableType] = []
    grid = _grid(widths, style)
    for row in rows:
        if len(widths) > 3:
            grid.add_row(_hang_indent(row[0], widths[0]), *map(Text, row[1 : len(widths)]))
            continue
        if _is_operation(row):
            parts += [grid, Text(row[0])]
            grid = _grid(widths, style)
        grid.add_row(f"  {_tensor(row)}", *map(Text, row[2:4]))
    return Padding(Group(*parts, grid), (0, 0, 0, _INDENT))


def _grid(widths: Sequence[int], style: str) -> Table:
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    for width in widths:
        grid.add_column(width=width, overflow="fold", style=style)
    return grid


def _hang_indent(text: str, width: int) -> Text:
    fits = cell_len(text) <= width
    return Text(text if fits else "\n  ".join(wrap_text(text, width - 2)))


def _is_operation(row: Row) -> bool:
    return row[0].startswith("→")


def _tensor(row: Row) -> str:
    return row[1] if row[1] or _is_operation(row) else row[0]
