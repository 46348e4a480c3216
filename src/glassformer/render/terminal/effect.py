"""What an intervention did, in the terminal: tokens, positions, parts and heads."""

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from glassformer.analysis.effects import Effect
from glassformer.languages import Language
from glassformer.render.head_cells import Drawing, fit_scale, head_cells
from glassformer.render.marks import HIDDEN, label, visible_token
from glassformer.render.paragraph import Paragraph
from glassformer.render.terminal.head_marks import draw_marks
from glassformer.render.terminal.heat_map import ROW, WIDEST_ROW, count_fitting_keys, draw_heat
from glassformer.render.terminal.pooled_map import draw_map
from glassformer.render.terminal.shades import shade_legend
from glassformer.render.tokens import row_labels, token_names
from glassformer.tracing import Trace

_MOST_POSITIONS = 8
_MOST_PARTS = 6
_MOST_ROWS = 24  # of a head
_BAR = 20  # cells of the longest bar
_CELL = 16  # cells of a token


def draw_effect(
    found: Effect, before: Trace, after: Trace, *, width: int, language: Language
) -> RenderableType:
    """Probabilities, divergences, parts and the head that changed most; then one sentence."""
    say = language.say
    where = visible_token(found.positions[found.position])
    shown: list[RenderableType] = [
        Text(say("change.tokens", position=where), style="bold"),
        _draw_tokens(found, language),
        Text(say("change.positions"), style="bold"),
        _draw_positions(found),
        "",
    ]
    if found.parts:
        shown += [
            Text(say("change.parts", position=where), style="bold"),
            *(
                Text.assemble((f"{100 * part.change:7.1f} %  ", "cyan"), visible_token(part.name))
                for part in found.parts[:_MOST_PARTS]
            ),
            "",
        ]
    shown += _draw_heads(found, before, after, width, language)
    return Group(*shown, Paragraph(_conclude(found, language)))


def _draw_tokens(found: Effect, language: Language) -> Table:
    say = language.say
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(say("change.column.token"), no_wrap=True)
    for name in (say("change.column.before"), say("change.column.after")):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for shift in sorted(found.tokens, key=lambda shift: -shift.before):
        colour = "green" if shift.after > shift.before else "red"
        points = Text(f"{100 * (shift.after - shift.before):+.1f}", style=colour)
        shares = (f"{100 * share:.1f} %" for share in (shift.before, shift.after))
        table.add_row(label(shift.token, _CELL), *shares, points)
    return table


def _draw_positions(found: Effect) -> Table:
    """The positions that changed most, in the order of the text."""
    values = found.divergence
    largest = values.topk(min(_MOST_POSITIONS, len(values))).indices.sort().values.tolist()
    most = max(float(values.max()), 1e-30)
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", style="dim", no_wrap=True)
    for _ in range(3):
        table.add_column(no_wrap=True)
    for i in largest:
        bar = "█" * round(_BAR * float(values[i]) / most)
        number = Text(f"{float(values[i]):.3f}", style="cyan")
        table.add_row(str(i), label(found.positions[i], _CELL), number, Text(bar, style="dim"))
    return table


def _draw_heads(
    found: Effect, before: Trace, after: Trace, width: int, language: Language
) -> list[RenderableType]:
    say, best = language.say, found.most_changed_head()
    if found.heads is None or best is None:
        return [Paragraph(say("change.heads.none"), style="dim"), ""]
    rows = {name: found.heads.by_head(name).tolist() for name in found.heads.sites}
    numbers = range(max(map(len, rows.values())))
    name, head, distance = best
    title = say("change.head", site=visible_token(name), head=head, distance=f"{distance:.2f}")
    return [
        Text(say("change.heads"), style="bold"),
        draw_marks("", rows, numbers, width=width, blank_zero=True),
        Paragraph(say("compare.legend"), style="dim"),
        "",
        Text(title, style="bold"),
        *_draw_head(before, after, name, head, width, language),
        "",
    ]


def _draw_head(
    before: Trace, after: Trace, name: str, head: int, width: int, language: Language
) -> list[RenderableType]:
    """One head without and with the intervention, and how far its weights moved."""
    say, sites = language.say, (before[name], after[name])
    queries = row_labels(before, sites[0], 0, most=ROW)
    keys = token_names(before, sites[0], 0)[1]
    L, S = sites[0].shape[2:]
    is_whole = L <= _MOST_ROWS and count_fitting_keys(width, queries, most=WIDEST_ROW) >= S
    most = (L, S) if is_whole else (16, min(S, width - 2))
    a, b = (head_cells(site, head, most, Drawing()) for site in sites)
    scale = fit_scale([a, b], sites[0], Drawing())
    moved = (b.nan_to_num(0.0) - a.nan_to_num(0.0)).abs().where(~(a.isnan() & b.isnan()), a)
    names = (say("change.before"), say("change.after"), say("change.difference"))
    shown: list[RenderableType] = []
    for title, cells in zip(names, (a, b, moved), strict=True):
        drawn = (
            draw_heat(cells, queries, keys, most=WIDEST_ROW, scale=scale)
            if is_whole
            else draw_map(cells, scale)
        )
        shown += [Text(title, style="dim"), drawn]
    legend = shade_legend(scale, Drawing(), language, hidden=HIDDEN if is_whole else None)
    return [*shown, Paragraph(legend, style="dim")]


def _conclude(found: Effect, language: Language) -> str:
    """What the intervention did to the prediction: no more than the numbers say."""
    first, second = found.best_before, found.best_after
    at = int(found.divergence.argmax())
    values = {
        "position": visible_token(found.positions[found.position]),
        "first": visible_token(first.token),
        "second": visible_token(second.token),
        "before": f"{100 * first.before:.0f}",
        "after": f"{100 * first.after:.0f}",
        "now": f"{100 * second.after:.0f}",
        "nats": f"{float(found.divergence[found.position]):.3f}",
        "most": f"{float(found.divergence[at]):.3f}",
        "where": visible_token(found.positions[at]),
    }
    if float(found.divergence.max()) < 1e-9:
        return language.say("change.same")
    is_kept = first.token == second.token
    return language.say("change.kept" if is_kept else "change.moved", **values)
