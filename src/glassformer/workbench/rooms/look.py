"""Look: a run, what came of it, the cell to begin with, and the operands of its sites."""

from contextlib import nullcontext
from typing import Any

import torch

from glassformer.analysis.lens import label_tokens
from glassformer.errors import TraceError
from glassformer.render.page.document import describe_trace
from glassformer.render.page.sites import Tensors, pack_site
from glassformer.tracing import Site, Trace
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory, Reading, on_one_thread
from glassformer.workbench.wire.runs import RunRequest, SiteRequest

LONG = 2048  # tokens: beyond, the server computes what is shown, and some queries stand for all
_SHORT = 1 << 15  # cells of a site, of all heads
_GUESSES = 10


def describe_run(asked: RunRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """All that is shown of a run before a site is opened."""
    reading = memory.glance(asked, progress)
    is_short = all(torch.Size(site.shape).numel() <= _SHORT for site in reading.trace)
    with on_one_thread() if is_short else nullcontext():
        return _describe(reading)


def _describe(reading: Reading) -> dict[str, Any]:
    tensors = Tensors()
    page = describe_trace(reading.trace, tensors)
    opened = select_site(reading.trace, page["opening"]["site"])
    return {
        "page": page,
        "tensors": tensors.packed,
        "opened": None if is_long(opened) else pack_site(opened),
        "outcome": _describe_outcome(reading),
        "insight": _find_insight(reading.trace, page),
    }


def open_site(asked: SiteRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """The operands of one site."""
    site = select_site(memory.glance(asked, progress).trace, asked.site)
    if is_long(site):
        raise TraceError(
            f"The operands of a site are sent for texts of up to {LONG:,} tokens; {site.name} has "
            f"{max(site.shape[2:]):,}. Ask for a sketch of a head, or open the Atlas."
        )
    return pack_site(site)


def select_site(trace: Trace, number: int) -> Site:
    """A site by its number in the run that is shown."""
    if number >= len(trace):
        raise TraceError(f"This run has sites 0 … {len(trace) - 1}; got site={number}.")
    return list(trace)[number]


def is_long(site: Site) -> bool:
    """Whether a site has more cells than a browser computes at once."""
    return max(site.shape[2:]) > LONG


def _describe_outcome(reading: Reading) -> dict[str, Any]:
    """What the model makes of the text; nothing, where a saved trace is shown."""
    trace, outcome = reading.trace, {"kind": "none", "text": None, "guesses": []}
    if reading.source is None:
        return outcome
    tokens = trace.run.texts["tokens"].tokens[0]
    if "source" in trace.run.texts:
        written = tokens.tolist()[reading.n_start :]
        return outcome | {"kind": "translation", "text": reading.decode(written)}
    readout = trace.residual().readout if trace.run.streams else None
    if readout is None or not readout.operations:
        return outcome
    if reading.continues:
        kind, rows = "continuation", [len(tokens) - 1]
    else:
        kind, rows = "gaps", (tokens == reading.gap).nonzero().flatten().tolist()
    if not rows:
        return outcome
    return outcome | {"kind": kind, "guesses": [_list_guesses(reading, row) for row in rows]}


def _list_guesses(reading: Reading, row: int) -> list[dict[str, Any]]:
    """The most probable tokens at a position."""
    stream = reading.trace.residual()
    readout = stream.require_readout()
    probabilities = readout(stream.end[:, [row]])[0, 0].float().softmax(-1)
    best = probabilities.topk(min(_GUESSES, len(probabilities)))
    tokens = best.indices.tolist()
    return [
        {"piece": piece, "token": token, "probability": share}
        for piece, token, share in zip(
            label_tokens(readout, tokens), tokens, best.values.tolist(), strict=True
        )
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
        "weight": site.arithmetic(head, query, key).weight,  # of long texts too: one row alone
        "query_label": names["queries"][query],
        "key_label": names["keys"][key],
        "next_label": names["next"][query] if "next" in names else None,
    }
