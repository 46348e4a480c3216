"""What changed between two runs: the probabilities of tokens, and the attention of a head."""

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.analysis import Comparison
from glassformer.analysis.lens import label_tokens, name_positions
from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.render.chart import Axis, Bars, Cells, Chart, Panel, Series
from glassformer.render.charts.labels import as_number, as_rows, title_of_run
from glassformer.render.marks import visible_token
from glassformer.render.paragraph import join_sentences
from glassformer.render.tokens import row_labels, token_names
from glassformer.tracing import Trace

_MOST_BLOCKS = 96  # rows and columns of attention that are drawn


def chart_of_change(
    found: Comparison,
    language: Language,
    *,
    site: str | None = None,
    head: int | None = None,
    position: int = -1,
    top: int = 8,
) -> Chart:
    """Top tokens before and after, side by side; a head's attention before, after, difference.

    Without `site` and `head`, the head whose attention changed most. Tokens need both residual
    streams.
    """
    say = language.say
    if found.traces is None:
        raise TraceError("A chart of a change needs the two traces; use gf.compare(first, second).")
    first, second = found.traces
    panels: list[Panel] = []
    sentences: list[str] = []
    if first.run.streams and second.run.streams:
        panels.append(_draw_tokens(first, second, found.sequence, position, top, language))
        sentences.append(say("chart.change.tokens.caption"))
    name, number = _choose_head(found, site, head)
    panels += _draw_attention(first, second, name, number, found.sequence, language)
    sentences.append(say("chart.change.attention.caption"))
    if max(first[name].shape[2:]) > _MOST_BLOCKS:
        sentences.append(say("chart.change.blocks"))
    tokens = token_names(first, first[name], found.sequence)[0]
    return Chart(
        tuple(panels),
        title_of_run({**first.model, **second.model}, tokens, language),
        join_sentences(sentences, language),
    )


def _draw_tokens(
    first: Trace, second: Trace, sequence: int, position: int, top: int, language: Language
) -> Bars:
    """The most probable tokens of both runs, with their probabilities in each."""
    say = language.say
    streams = [trace.residual() for trace in (first, second)]
    n = min(stream.start.shape[1] for stream in streams)
    if not -n <= position < n:
        raise TraceError(f"There are {n} positions; got position={position}.")
    shares = []
    for stream in streams:
        logits = stream.require_readout()(stream.end[sequence : sequence + 1, [position]])
        shares.append(logits[0, 0].float().softmax(-1).cpu())
    best = torch.stack(shares).amax(0)
    chosen = best.topk(min(top, len(best))).indices
    order = chosen[shares[0][chosen].argsort(descending=True, stable=True)].tolist()
    labels = label_tokens(streams[0].require_readout(), order)
    where = name_positions(first, streams[0], sequence)[position]
    pairs = zip((say("chart.before"), say("chart.after")), shares, strict=True)
    return Bars(
        title=say("chart.change.tokens", position=visible_token(where)),
        y=Axis(label=say("chart.probability.plain"), least=0.0),
        names=tuple(labels),
        series=tuple(
            Series(name=name, values=tuple(as_number(float(share[i])) for i in order))
            for name, share in pairs
        ),
    )


def _choose_head(found: Comparison, site: str | None, head: int | None) -> tuple[str, int]:
    """The head asked for; otherwise the one whose attention changed most."""
    if site is not None and site not in found.sites:
        shared = ", ".join(found.sites)
        raise TraceError(f"The runs must share the site; they share {shared}; got {site!r}.")
    sites = list(found.sites) if site is None else [site]
    if head is not None and all(head not in found.heads[name] for name in sites):
        known = ", ".join(map(str, found.heads[sites[0]]))
        raise TraceError(f"head must be one of {known}; got head={head}.")
    changed = [
        (float(value), name, number)
        for name in sites
        for number, value in zip(found.heads[name], found.by_head(name), strict=True)
        if head is None or number == head
    ]
    _, name, number = max(changed, key=lambda each: each[0])
    return name, number


def _draw_attention(
    first: Trace, second: Trace, name: str, head: int, sequence: int, language: Language
) -> list[Panel]:
    say = language.say
    before, after = (
        trace[name].weights(head, sequence=sequence).float().cpu() for trace in (first, second)
    )
    queries = row_labels(first, first[name], sequence, most=14)
    keys = token_names(first, first[name], sequence)[1]
    is_whole = max(before.shape) <= _MOST_BLOCKS
    drawn = (
        (say("chart.change.before", site=name, head=head), before, False),
        (say("chart.change.after", site=name, head=head), after, False),
        (say("chart.change.difference"), after - before, True),
    )
    largest = float(torch.stack([before, after]).amax())
    return [
        Cells(
            title=title,
            rows=say("figure.query"),
            columns=say("figure.key"),
            values=as_rows(_pool(values)),
            row_names=tuple(queries) if is_whole else (),
            column_names=tuple(keys) if is_whole else (),
            legend=say("chart.change.legend") if is_signed else say("figure.weight"),
            is_signed=is_signed,
            most=None if is_signed else as_number(largest),
        )
        for title, values, is_signed in drawn
    ]


def _pool(values: Float[Tensor, "L S"]) -> Float[Tensor, "M N"]:
    """Blocks of a long text, each shown by its number of the largest size."""
    for dim in (0, 1):
        n = values.shape[dim]
        if n > _MOST_BLOCKS:
            size = -(-n // _MOST_BLOCKS)
            blocks = values.split(size, dim)
            values = torch.cat([_select_largest(block, dim) for block in blocks], dim)
    return values


def _select_largest(block: Tensor, dim: int) -> Tensor:
    return block.gather(dim, block.abs().argmax(dim, keepdim=True))
