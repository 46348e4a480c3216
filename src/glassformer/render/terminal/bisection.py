"""Where two runs part: the verdict, how the difference grows by layer, one cell in both."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from glassformer.analysis.bisection import Bisection, ComparedCell, LayerDifference
from glassformer.languages import Language
from glassformer.render.marks import visible_token
from glassformer.render.paragraph import Paragraph

_SETTINGS = ("mask", "bias", "scale", "softcap", "norm")
_MOST_LAYERS = 48  # above which those in the middle are left out


def draw_bisection(found: Bisection, *, language: Language) -> RenderableType:
    """The verdict, a line for each layer, and the arithmetic of one cell."""
    parts: list[RenderableType] = [Paragraph(found.verdict(language))]
    if found.layers:
        parts += [Text(""), Text(language.say("bisect.table"), style="bold")]
        parts.append(_draw_layers(found, language))
    if found.cell is not None:
        parts += [Text(""), *_draw_cell(found.cell, language)]
    return Group(*parts)


def _draw_layers(found: Bisection, language: Language) -> Table:
    say = language.say
    columns = {
        "stream": say("bisect.column.stream"),
        "q": "q",
        "k": "k",
        "v": "v",
        "out": "out",
        "kernel": say("bisect.column.kernel"),
        "written": say("bisect.column.written"),
        "mlp": "mlp",
    }
    seen = [name for name in columns if any(name in _values(line) for line in found.layers)]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column(say("bisect.column.layer"), no_wrap=True)
    for name in seen:
        table.add_column(columns[name], justify="right", no_wrap=True)
    table.add_column("")
    origin = found.origin
    for line in _shorten(found.layers):
        if line is None:
            table.add_row("…")
            continue
        values = _values(line)
        is_origin = origin is not None and line.name == _line_name(origin.name, origin.layer)
        marked = set(origin.operands) if origin is not None and is_origin else set()
        cells = [_draw_number(values.get(name), is_marked=name in marked) for name in seen]
        settings = ", ".join(name for name in _SETTINGS if name in line.apart)
        table.add_row(visible_token(line.name), *cells, Text(settings, style="red"))
    return table


def _values(line: LayerDifference) -> dict[str, float]:
    values = {name: value for name, value in line.apart.items() if name not in _SETTINGS}
    if "start" in values:
        values["stream"] = values.pop("start")
    return values if line.kernel is None else values | {"kernel": line.kernel}


def _line_name(name: str, layer: int | None) -> str:
    stack = name.partition(".")[0]
    return stack if layer is None else f"{stack}.{layer}"


def _shorten(lines: tuple[LayerDifference, ...]) -> list[LayerDifference | None]:
    if len(lines) <= _MOST_LAYERS:
        return list(lines)
    half = _MOST_LAYERS // 2
    return [*lines[:half], None, *lines[-half:]]


def _draw_number(value: float | None, *, is_marked: bool) -> Text:
    if value is None:
        return Text("")
    return Text(f"{value:.2g}", style="bold red" if is_marked else "cyan")


def _draw_cell(cell: ComparedCell, language: Language) -> list[RenderableType]:
    say = language.say
    where = {"head": cell.head, "query": cell.query, "column": cell.key}
    title = say("bisect.cell", site=visible_token(cell.site), **where)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("", "q · k", "· scale", "score", "exp", "Σ exp", "weight"):
        table.add_column(name, justify="right", no_wrap=True)
    runs = ((say("bisect.cell.first"), cell.first), (say("bisect.cell.second"), cell.second))
    for name, run in runs:
        numbers = (run.dot, run.scaled, run.score, run.exp, run.total, run.weight)
        table.add_row(name, *(f"{number:.5g}" for number in numbers))
    i = cell.coordinate
    a, b = (f"{run.q[i]:.4g} · {run.k[i]:.4g} = {run.products[i]:.4g}" for _, run in runs)
    note = Paragraph(say("bisect.cell.coordinate", i=i, first=a, second=b), style="dim")
    return [Text(title, style="bold"), table, note]
