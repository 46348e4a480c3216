"""A trace in the terminal: an overview of all heads, one head in full, one row step by step."""

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.text import Text

from glassformer.languages import Language
from glassformer.render.difference import describe_difference
from glassformer.render.head_cells import Drawing, fit_scale, head_cells
from glassformer.render.heading import heading
from glassformer.render.marks import HIDDEN, label, visible_token
from glassformer.render.paragraph import Paragraph
from glassformer.render.sampled_queries import count_queries
from glassformer.render.terminal.heat_map import ROW, WIDEST_ROW, count_fitting_keys, draw_heat
from glassformer.render.terminal.matrix import draw_weights
from glassformer.render.terminal.overview import draw_heads, draw_overview
from glassformer.render.terminal.pooled_map import draw_map
from glassformer.render.terminal.shades import shade_legend
from glassformer.render.terminal.steps import draw_steps
from glassformer.render.terminal.top_tokens import draw_top_keys
from glassformer.render.tokens import row_labels, row_title, token_names
from glassformer.tracing import Site, Trace

_FEW = 12  # tokens up to which weights are shown as numbers
_ROWS = 40  # rows of a list


def draw_picture(
    trace: Trace,
    site: Site,
    head: int,
    *,
    width: int,
    language: Language,
    drawing: Drawing | None = None,
    sequence: int = 0,
) -> RenderableType:
    """The heading, an overview of all heads, then one head: weights, top keys and statistics."""
    say = language.say
    drawing = drawing or Drawing()
    queries = row_labels(trace, site, sequence, most=ROW)
    keys = token_names(trace, site, sequence)[1]
    S = site.shape[3]
    some, all_ = count_queries(site)
    title = say("look.title", site=visible_token(site.name), head=head, queries=all_, keys=S)
    note = [] if some == all_ else [Paragraph(say("look.sampled", n=some, all=all_), style="dim")]
    above = heading(trace, site, language, sequence=sequence)
    rows = Paragraph(say("look.rows", rows=row_title(trace, site, language)), style="dim")
    return Group(
        *([Paragraph(above), ""] if above else []),
        draw_overview(trace, language=language, width=width, sequence=sequence),
        "",
        Text(title, style="bold"),
        rows,
        *note,
        "",
        *_weights(site, head, queries, keys, width, drawing, language, sequence),
        "",
        Text(say("look.attended"), style="bold"),
        _draw_attended(site, head, queries, keys, width, sequence),
        "",
        Text(say("look.heads", site=visible_token(site.name)), style="bold"),
        draw_heads(trace, site, language=language, sequence=sequence),
        "",
        Paragraph(say("look.note"), style="dim"),
        Paragraph(describe_difference([site], language), style="dim"),
    )


def draw_row(
    trace: Trace,
    site: Site,
    head: int,
    query: int,
    *,
    language: Language,
    sequence: int = 0,
) -> RenderableType:
    """One query's attention in five steps, with the model's own numbers."""
    queries, keys = row_labels(trace, site, sequence), token_names(trace, site, sequence)[1]
    row = site.row(head, query, sequence=sequence)
    title = language.say("look.row", site=visible_token(site.name), head=head, query=query)
    return Group(
        Text.assemble((title, "bold"), " ", label(queries[query])),
        "",
        draw_steps(row, keys, language=language),
        "",
        Paragraph(describe_difference([site], language), style="dim"),
    )


def _weights(
    site: Site,
    head: int,
    queries: list[str],
    keys: list[str],
    width: int,
    drawing: Drawing,
    language: Language,
    sequence: int,
) -> list[RenderableType]:
    """Numbers if they fit, else shades, else a pooled map."""
    L, S = site.shape[2:]
    if max(L, S) <= _FEW and drawing == Drawing():
        weights, seen = (
            part(head, sequence=sequence).cpu() for part in (site.weights, site.allowed)
        )
        numbers = draw_weights(weights, queries, keys, allowed=seen)
        if _measure_width(numbers) <= width:
            return [numbers]
    whole = L <= _ROWS and count_fitting_keys(width, queries, most=WIDEST_ROW) >= S
    most = (L, S) if whole else (32, width - 2)
    cells = head_cells(site, head, most, drawing, sequence=sequence)
    scale = fit_scale([cells], site, drawing)
    has_hidden = bool(cells.isnan().any())
    without = [] if drawing.first_key else [_note(language.say("figure.first.key"))]
    if whole:
        legend = shade_legend(scale, drawing, language, hidden=HIDDEN if has_hidden else None)
        heat = draw_heat(cells, queries, keys, most=WIDEST_ROW, scale=scale)
        return [heat, "", _note(legend), *without]
    say, (rows, cols) = language.say, cells.shape
    pooled = {"max": say("look.pooled", rows=rows, cols=cols)}
    pooled["mean"] = say("look.pooled.mean", rows=rows, cols=cols)
    blank = say("look.blank") if has_hidden else None
    legend = shade_legend(scale, drawing, language, hidden=blank)
    return [draw_map(cells, scale), "", _note(pooled[drawing.pool]), _note(legend), *without]


def _note(text: str) -> Paragraph:
    return Paragraph(text, style="dim")


def _draw_attended(
    site: Site, head: int, queries: list[str], keys: list[str], width: int, sequence: int
) -> RenderableType:
    """The top three keys of each query, or as many as fit."""
    rows = range(max(0, site.shape[2] - _ROWS), site.shape[2])
    for k in (3, 2, 1):
        found = draw_top_keys(site, head, queries, keys, rows=rows, k=k, sequence=sequence)
        if _measure_width(found) <= width:
            break
    return found


def _measure_width(drawing: RenderableType) -> int:
    endless = Console(width=10_000)
    return Measurement.get(endless, endless.options, drawing).maximum
