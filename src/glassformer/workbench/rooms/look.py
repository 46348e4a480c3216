"""Look: a run, what came of it, the cell to begin with, and the operands of its sites."""

from typing import Any

from glassformer.errors import TraceError
from glassformer.generation.continuation import tokenizer_of
from glassformer.models import Encoder, EncoderDecoder
from glassformer.render.page.document import describe_trace
from glassformer.render.page.sites import Tensors, pack_operands
from glassformer.text.pieces import labels
from glassformer.tracing import Site, Trace
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory, Reading
from glassformer.workbench.wire.runs import RunRequest, SiteRequest

_GUESSES = 10


def describe_run(asked: RunRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """All that is shown of a run before a site is opened."""
    reading = memory.reading(asked, progress)
    tensors = Tensors()
    page = describe_trace(reading.trace, tensors)
    return {
        "page": page,
        "tensors": tensors.packed,
        "outcome": _describe_outcome(reading),
        "insight": _find_insight(reading.trace, page),
    }


def pack_site(asked: SiteRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """The operands of one site."""
    return pack_operands(select_site(memory.reading(asked, progress).trace, asked.site))


def select_site(trace: Trace, number: int) -> Site:
    """A site by its number in the run that is shown."""
    if number >= len(trace):
        raise TraceError(f"This run has sites 0 … {len(trace) - 1}; got site={number}.")
    return list(trace)[number]


def _describe_outcome(reading: Reading) -> dict[str, Any]:
    """What the model makes of the text."""
    model, trace = reading.model, reading.trace
    if isinstance(model, EncoderDecoder):
        tokens = trace.run.texts["tokens"].tokens[0].tolist()
        start = list(model.special.start) or [model.special.begin or 0]
        text = tokenizer_of(model).decode(tokens[len(start) :])
        return {"kind": "translation", "text": text, "guesses": []}
    stream = trace.residual()
    if stream.readout is None or not stream.readout.operations:
        return {"kind": "none", "text": None, "guesses": []}
    tokens = trace.run.texts["tokens"].tokens[0]
    if isinstance(model, Encoder):
        rows = (tokens == model.special.mask).nonzero().flatten().tolist()
        kind = "gaps" if rows else "none"
    else:
        rows, kind = [len(tokens) - 1], "continuation"
    return {"kind": kind, "text": None, "guesses": [_list_guesses(reading, row) for row in rows]}


def _list_guesses(reading: Reading, row: int) -> list[dict[str, Any]]:
    """The most probable tokens at a position."""
    stream = reading.trace.residual()
    probabilities = stream.require_readout()(stream.end[:, [row]])[0, 0].float().softmax(-1)
    best = probabilities.topk(min(_GUESSES, len(probabilities)))
    tokenizer = tokenizer_of(reading.model)
    return [
        {"piece": labels(tokenizer, [token])[0], "token": token, "probability": share}
        for token, share in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def _find_insight(trace: Trace, page: dict[str, Any]) -> dict[str, Any]:
    """The cell that the run opens with, in words and numbers."""
    opening, run = page["opening"], page["runs"][page["opening"]["run"]]
    described = run["sites"][opening["site"]]
    site, query, key = trace[described["name"]], opening["query"], opening["key"]
    head = described["heads"][opening["head"]]
    names = {
        name: run["names"][described[name][0]]
        for name in ("queries", "keys", "next")
        if described[name]
    }
    return {
        "site": site.name,
        "head": head,
        "query": query,
        "key": key,
        "weight": float(site.weights(head=head, rows=slice(query, query + 1))[0, key]),
        "query_label": names["queries"][query],
        "key_label": names["keys"][key],
        "next_label": names["next"][query] if "next" in names else None,
    }
