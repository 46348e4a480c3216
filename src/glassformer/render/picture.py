"""A trace in the terminal: all heads at a glance, one of them in full, one row step by step."""

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.text import Text

from glassformer.languages import Language
from glassformer.observe import Site, Trace
from glassformer.render.attended import draw_attended
from glassformer.render.difference import told_difference
from glassformer.render.heat import draw_heat, widest_heat
from glassformer.render.map import draw_map
from glassformer.render.marks import label, shown
from glassformer.render.matrix import draw_weights
from glassformer.render.overview import draw_heads, draw_overview
from glassformer.render.paragraph import Paragraph
from glassformer.render.sampled import n_queries
from glassformer.render.steps import draw_steps
from glassformer.render.tokens import names_of

_FEW = 12  # tokens whose weights can be shown as numbers
_ROWS = 40  # rows of a list


def draw_picture(
    trace: Trace,
    site: Site,
    head: int,
    *,
    width: int,
    language: Language,
    sequence: int = 0,
) -> RenderableType:
    """The heads of a trace, the weights of one, what its tokens attend to, and in numbers."""
    say = language.say
    queries, keys = names_of(trace, site, sequence)
    S = site.shape[3]
    some, all_ = n_queries(site)
    title = say("look.title", site=shown(site.name), head=head, queries=all_, keys=S)
    note = [] if some == all_ else [Paragraph(say("look.sampled", n=some, all=all_), style="dim")]
    return Group(
        draw_overview(trace, language=language, sequence=sequence),
        "",
        Text(title, style="bold"),
        *note,
        "",
        _weights(site, head, queries, keys, width, language, sequence),
        "",
        Text(say("look.attended"), style="bold"),
        _attended(site, head, queries, keys, width, sequence),
        "",
        Text(say("look.heads", site=shown(site.name)), style="bold"),
        draw_heads(trace, site, language=language, sequence=sequence),
        "",
        Paragraph(say("look.note"), style="dim"),
        Paragraph(told_difference([site], language), style="dim"),
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
    """One query's attention in five steps, with the numbers of the model."""
    queries, keys = names_of(trace, site, sequence)
    row = site.row(head, query, sequence=sequence)
    told = language.say("look.row", site=shown(site.name), head=head, query=query)
    return Group(
        Text.assemble((told, "bold"), " ", label(queries[query])),
        "",
        draw_steps(row, keys, language=language),
        "",
        Paragraph(told_difference([site], language), style="dim"),
    )


def _weights(
    site: Site,
    head: int,
    queries: list[str],
    keys: list[str],
    width: int,
    language: Language,
    sequence: int,
) -> RenderableType:
    """Numbers where they have room, else shades, else a map of many weights to a mark."""
    L, S = site.shape[2:]
    if max(L, S) <= _FEW:
        numbers = draw_weights(site.weights(head, sequence=sequence).cpu(), queries, keys)
        if _wide(numbers) <= width:
            return numbers
    if L <= _ROWS and widest_heat(width, queries) >= S:
        return draw_heat(site.weights(head, sequence=sequence).cpu(), queries, keys)
    rows, cols = min(L, 32), min(S, width - 2)
    pooled = site.map(head, (rows, cols), sequence=sequence).share.cpu()
    note = Paragraph(language.say("look.pooled", rows=rows, cols=cols), style="dim")
    return Group(draw_map(pooled), note)


def _attended(
    site: Site, head: int, queries: list[str], keys: list[str], width: int, sequence: int
) -> RenderableType:
    """Three keys for each query, or as many as have room beside each other."""
    rows = range(max(0, site.shape[2] - _ROWS), site.shape[2])
    for k in (3, 2, 1):
        found = draw_attended(site, head, queries, keys, rows=rows, k=k, sequence=sequence)
        if _wide(found) <= width:
            break
    return found


def _wide(drawing: RenderableType) -> int:
    endless = Console(width=10_000)
    return Measurement.get(endless, endless.options, drawing).maximum
