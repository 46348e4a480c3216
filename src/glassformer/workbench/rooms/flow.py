"""Flow and why: the stream of a token, the lens along it, its contributions and its reasons."""

from typing import Any

from glassformer.analysis import attribute, logit_lens, why
from glassformer.analysis.lens import name_positions
from glassformer.analysis.neutral_text import NEUTRAL, record_reference
from glassformer.analysis.reasons import Why
from glassformer.errors import ConfigError
from glassformer.languages import CODES, Language
from glassformer.render.charts.labels import name_frozen
from glassformer.render.charts.why import tell_verdict, tree_of_why
from glassformer.tracing import Trace
from glassformer.tracing.stream import Stream
from glassformer.workbench.foreign_models import ForeignModel
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory, Reading
from glassformer.workbench.wire.flow import (
    AttributeRequest,
    FlowRequest,
    LensRequest,
    WhyRequest,
)

_TOP = 5  # tokens of a border
_LANGUAGES = [Language(code) for code in CODES]


def measure_flow(asked: FlowRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """The norm of the stream at each border, and of what each part adds to it."""
    reading = memory.reading(asked, progress)
    stream, row = find_stream(reading, asked)
    borders = [
        {"name": name, "norm": float(state[0, row].float().norm())}
        for name, state in stream.states()
    ]
    inflows = []
    for part, before in zip(stream.parts, borders, strict=False):
        size = float(part.value[0, row].float().norm())
        inflows.append(
            {
                "name": part.name,
                "kind": part.kind,
                "layer": part.layer,
                "site": part.site,
                "norm": size,
                "share": size / max(size + before["norm"], 1e-30),
            }
        )
    readout = stream.readout
    return {
        "stack": stream.name,
        "position": row,
        "label": name_positions(reading.trace, stream, 0)[row],
        "borders": borders,
        "inflows": inflows,
        "has_readout": readout is not None and bool(readout.operations),
    }


def read_lens(asked: LensRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """What the stream of the token would say at every border."""
    reading = memory.reading(asked, progress)
    stream, row = find_stream(reading, asked)
    lens = logit_lens(reading.trace, stack=stream.name, top=_TOP, positions=[row])
    return {
        "borders": [
            {
                "name": name,
                "top": [
                    {"token": token, "id": number, "probability": share}
                    for token, number, share in zip(
                        lens.labels[i][0],
                        lens.tokens[i, 0].tolist(),
                        lens.probabilities[i, 0].tolist(),
                        strict=True,
                    )
                ],
                "entropy": float(lens.entropy[i, 0]),
                "divergence": float(lens.divergence[i, 0]),
                "rank": int(lens.rank[i, 0]),
            }
            for i, name in enumerate(lens.borders)
        ],
        "settled": lens.settled(0),
    }


def attribute_token(asked: AttributeRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """What each part or head adds to the logit of a token."""
    reading = memory.reading(asked, progress)
    stream, row = find_stream(reading, asked)
    token = find_likeliest(stream, row) if asked.token is None else asked.token
    found = attribute(
        reading.trace, token, against=asked.against, by=asked.by, position=row, stack=stream.name
    )
    return {
        "token": found.token,
        "against": found.against,
        "position": found.position,
        "logit": found.logit,
        "shares": [
            {"name": each.name, "value": each.value, "part": each.part, "head": each.head}
            for each in found.top(len(found.shares))
        ],
        "remainder": found.remainder,
        "frozen": {each.code: name_frozen(found.frozen, each) for each in _LANGUAGES},
    }


def explain_token(asked: WhyRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """The chain of reasons; the verdict, which runs the model, is a job of its own."""
    found = _explain(asked, memory, progress, judged=False)
    return {
        "token": found.token,
        "against": found.against,
        "position": found.position,
        "logit": found.logit,
        "trees": {each.code: tree_of_why(found, each).as_dict() for each in _LANGUAGES},
        "named": found.named,
    }


def judge_reasons(asked: WhyRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """Whether the named parts are enough and needed: the model runs without them, and without all
    others."""
    found = _explain(asked, memory, progress, judged=True)
    verdict = found.verdict
    names = ("whole", "kept", "removed", "none", "carried", "needed", "n_parts")
    flags = ("is_telling", "is_enough", "is_needed")
    numbers = None
    if verdict is not None:
        numbers = {name: getattr(verdict, name) for name in (*names, *flags)}
        numbers["random_kept"] = list(verdict.random_kept)
        numbers["random_removed"] = list(verdict.random_removed)
    return {
        "sentence": {each.code: tell_verdict(found, each) for each in _LANGUAGES},
        "numbers": numbers,
    }


def _explain(asked: WhyRequest, memory: Memory, progress: Progress, *, judged: bool) -> Why:
    reading = memory.reading(asked, progress)
    stream, row = find_stream(reading, asked)
    stream.require_readout()
    with reading.counting(progress):
        return why(
            reading.trace,
            asked.token,
            against=asked.against,
            position=row,
            top=asked.top,
            depth=asked.depth,
            branches=asked.branches,
            reference=_record_reference(reading, asked.reference) if judged else None,
            judged=judged,
            stack=stream.name,
            progress=progress,
        )


def _record_reference(reading: Reading, text: str | None) -> Trace | None:
    """Another text on the model, a neutral one unless given: its means stand in for parts."""
    source = reading.source
    if isinstance(source, ForeignModel):
        return source.trace(text or NEUTRAL, None, changes=None) if source.continues else None
    return None if source is None else record_reference(source, text or None)


def find_stream(reading: Reading, asked: FlowRequest) -> tuple[Stream, int]:
    """The stream that a site reads and writes, and the row of the query."""
    trace = reading.trace
    site = trace[asked.site]
    L = site.shape[2]
    if asked.query >= L:
        raise ConfigError(f"{site.name} has {L} queries; got query={asked.query}.")
    stacks = trace.run.streams
    for stack, stream in stacks.items():
        if any(part.site == site.name for part in stream.parts):
            return trace.residual(stack), asked.query
    return trace.residual(site.name.partition(".")[0]), asked.query


def find_likeliest(stream: Stream, row: int) -> int:
    """The token that the model puts first at a position."""
    logits = stream.require_readout()(stream.end[:1, [row]])[0, 0]
    return int(logits.argmax())
