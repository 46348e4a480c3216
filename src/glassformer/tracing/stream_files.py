"""A residual stream in a trace file: what was added, and the norms it passed.

The matrices that write to the stream and read it belong to the model and stay with it: a stream
that was read from a file can be looked at and summed, but not split into heads or read out. The
best tokens of every position are saved beside it.
"""

from dataclasses import dataclass
from typing import Any, get_args

from torch import Tensor

from glassformer.errors import TraceError
from glassformer.settings import Whole, quote
from glassformer.tracing.best_tokens import BestTokens
from glassformer.tracing.norm_form import NormForm
from glassformer.tracing.stream import Kind, Part, Stream, Transform


@dataclass(frozen=True, kw_only=True, slots=True)
class StepHeader:
    """A part of the stream; with `is_centred` a norm, with `factor` a factor."""

    name: str
    layer: Whole | None = None
    kind: str | None = None
    site: str | None = None
    is_joined: bool = False
    is_centred: bool | None = None
    eps: float = 0.0
    factor: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamHeader:
    """A residual stream in the header."""

    name: str
    text: str
    steps: tuple[StepHeader, ...]
    rows: tuple[Whole, ...] | None = None
    best: dict[str, Any] | None = None  # how the best tokens read; older files have none


def encode_stream(stream: Stream, where: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """The header of a stream; its tensors are added to `tensors`."""
    prefix = f"{where}/{stream.name}.stream"
    tensors[f"{prefix}/start"] = stream.start
    steps = [_encode_step(step, f"{prefix}/{step.name}", tensors) for step in stream.steps]
    header = {"name": stream.name, "text": stream.text, "steps": steps, "rows": stream.rows}
    best = stream.best_tokens()
    if best is not None:
        tensors[f"{prefix}/best/tokens"] = best.tokens
        tensors[f"{prefix}/best/logits"] = best.logits
        header["best"] = {str(token): label for token, label in best.labels.items()}
    return header


def _encode_step(step: Part | Transform, prefix: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    if isinstance(step, Part):
        tensors[prefix] = step.value
        if step.state is not None:
            tensors[f"{prefix}/state"] = step.state
        return {
            "name": step.name,
            "layer": step.layer,
            "kind": step.kind,
            "site": step.site,
            "is_joined": step.is_joined,
        }
    if step.norm is None:
        if isinstance(step.factor, Tensor):
            tensors[prefix] = step.factor
            return {"name": step.name}
        return {"name": step.name, "factor": step.factor}
    for name in ("gain", "bias"):
        if (vector := getattr(step.norm, name)) is not None:
            tensors[f"{prefix}/{name}"] = vector
    return {"name": step.name, "is_centred": step.norm.is_centred, "eps": step.norm.eps}


def decode_stream(header: StreamHeader, where: str, tensors: dict[str, Tensor]) -> Stream:
    """The stream of a header; what does not fit raises a TraceError."""
    prefix = f"{where}/{header.name}.stream"
    start = _find(tensors, f"{prefix}/start")
    if start.ndim != 3 or not start.is_floating_point():
        raise TraceError(f"the stream {quote(header.name)} must be (B, L, C) numbers")
    if header.rows is not None and len(header.rows) != start.shape[1]:
        raise TraceError(f"the stream {quote(header.name)} must name {start.shape[1]} rows")
    names = [step.name for step in header.steps]
    if len(set(names)) != len(names):
        raise TraceError(f"the stream {quote(header.name)} has a step twice")
    steps = [_decode_step(step, f"{prefix}/{step.name}", start, tensors) for step in header.steps]
    if steps and isinstance(steps[0], Part) and steps[0].is_joined:
        raise TraceError(f"the first step of {quote(header.name)} has none to be joined with")
    return Stream(
        name=header.name,
        text=header.text,
        start=start,
        steps=steps,
        rows=header.rows,
        best=_decode_best(header, prefix, start, tensors),
    )


def _decode_best(
    header: StreamHeader, prefix: str, start: Tensor, tensors: dict[str, Tensor]
) -> BestTokens | None:
    if header.best is None:
        return None
    tokens, logits = (_find(tensors, f"{prefix}/best/{name}") for name in ("tokens", "logits"))
    is_fitting = tokens.shape == logits.shape and tokens.shape[:2] == start.shape[:2]
    if not is_fitting or tokens.is_floating_point() or not logits.is_floating_point():
        raise TraceError(f"the best tokens of {quote(header.name)} must fit its stream")
    if not all(n.isdecimal() and isinstance(label, str) for n, label in header.best.items()):
        raise TraceError(f"the best tokens of {quote(header.name)} must be numbers with labels")
    labels = {int(token): label for token, label in header.best.items()}
    return BestTokens(tokens=tokens, logits=logits, labels=labels)


def _decode_step(
    header: StepHeader, prefix: str, start: Tensor, tensors: dict[str, Tensor]
) -> Part | Transform:
    C = start.shape[-1:]
    if header.kind is not None:
        kind: Any = header.kind
        if kind not in get_args(Kind) or header.layer is None:
            raise TraceError(f"{quote(header.name)} must be one of {', '.join(get_args(Kind))}")
        value, state = _find(tensors, prefix), tensors.get(f"{prefix}/state")
        if any(
            t is not None and (t.shape != start.shape or not t.is_floating_point())
            for t in (value, state)
        ):
            raise TraceError(f"{quote(header.name)} must fit the start of its stream")
        return Part(
            name=header.name,
            layer=header.layer,
            kind=kind,
            value=value,
            site=header.site,
            is_joined=header.is_joined,
            state=state,
        )
    if header.is_centred is not None:
        gain, bias = (tensors.get(f"{prefix}/{name}") for name in ("gain", "bias"))
        if any(t is not None and t.shape != C for t in (gain, bias)):
            raise TraceError(f"{quote(header.name)} must have one number for each feature")
        norm = NormForm(is_centred=header.is_centred, eps=header.eps, gain=gain, bias=bias)
        return Transform(name=header.name, norm=norm)
    if header.factor is not None:
        return Transform(name=header.name, factor=header.factor)
    factor = _find(tensors, prefix)
    if factor.numel() != 1 and factor.shape != C:
        raise TraceError(f"{quote(header.name)} must be a number, or one for each feature")
    return Transform(name=header.name, factor=factor)


def _find(tensors: dict[str, Tensor], name: str) -> Tensor:
    if name not in tensors:
        raise TraceError(f"the tensor {quote(name)} is missing")
    return tensors[name]
