"""`attention`, and the choice of its backend, which `explain` reports with reasons."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.errors import BackendError, ConfigError
from glassformer.functional import reference
from glassformer.functional.autocast import autocast_dtype, cast_operands, without_autocast
from glassformer.functional.backends import flex, native, native_timing, padded, sdpa, streaming
from glassformer.functional.biases import Bias
from glassformer.functional.checks import Scoring, check_scoring, check_values
from glassformer.functional.graph_capture import is_traced
from glassformer.functional.masks import Mask
from glassformer.functional.repeated_calls import (
    kind_of_call,
    recall_latest,
    recall_options,
    remember_options,
)
from glassformer.functional.tiles import Plan

Name = Literal["sdpa", "native", "padded", "flex", "streaming", "reference"]

_SMALL = 1 << 20  # cells: below this, a dense mask is cheapest
_LARGE = 1 << 28  # cells: above this, a dense mask takes too much memory
_SPARSE = 0.5  # share of tiles: below this, skipping the others beats a fused kernel on the CPU


class Backend(NamedTuple):
    """One way to compute attention: `refusal` says why it cannot, `attend` computes it."""

    refusal: Callable[[Tensor, Tensor, Tensor, Scoring, float], str | None]
    attend: Callable[[Tensor, Tensor, Tensor, Scoring, float], Tensor]


def _attend_by_definition(
    q: Tensor, k: Tensor, v: Tensor, scoring: Scoring, dropout: float
) -> Tensor:
    return reference.attention(q, k, v, **scoring.options(), dropout=dropout)


BACKENDS: dict[str, Backend] = {
    "sdpa": Backend(sdpa.refusal, sdpa.attend),
    "native": Backend(native.refusal, native.attend),
    "padded": Backend(padded.refusal, padded.attend),
    "flex": Backend(flex.refusal, flex.attend),
    "streaming": Backend(streaming.refusal, streaming.attend),
    "reference": Backend(lambda *_: None, _attend_by_definition),
}


def attention(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    v: Float[Tensor, "B K S E"],
    *,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Bias | Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
    backend: Name | None = None,
) -> Float[Tensor, "B H L E"]:
    """softmax(q kᵀ · scale + bias, where the mask allows) v, by the fastest exact backend.

    Query head h reads key-value head h // (H // K). A row where nothing is allowed gives zeros.
    `dropout` acts on the weights whenever it is not 0: pass 0 outside of training.

    >>> import torch
    >>> q, k, v = torch.randn(3, 1, 8, 5, 64).unbind(0)
    >>> attention(q, k, v).shape
    torch.Size([1, 8, 5, 64])
    """
    kind = None
    if bias is None and softcap is None and backend is None:
        if (known := recall_latest(q, k, v, mask, scale, dropout)) is None:
            kind = kind_of_call(q, k, v, mask, scale, dropout)
            known = None if kind is None else recall_options(kind, q, k, v)
        if known is not None:
            try:  # a context manager would take longer than the choice
                if not known:  # unpacking nothing takes time, too
                    return F.scaled_dot_product_attention(q, k, v)
                return F.scaled_dot_product_attention(q, k, v, **known)
            except RuntimeError:  # the checks below say what is wrong
                pass
    if autocast_dtype(q) is not None:
        q, k, v, bias = cast_operands(q, k, v, bias)
        options = {"mask": mask, "bias": bias, "scale": scale, "softcap": softcap}
        with without_autocast(q):
            return attention(q, k, v, **options, dropout=dropout, backend=backend)
    scoring = check_scoring(q, k, mask=mask, bias=bias, scale=scale, softcap=softcap)
    check_values(q, k, v, dropout)
    name = _choose(q, k, v, scoring, dropout).backend if backend is None else backend
    if backend is not None:
        _require_backend(name, q, k, v, scoring, dropout)
    if kind is not None and name == "sdpa":
        remember_options(kind, q, k, v, scoring, dropout)
    try:
        return BACKENDS[name].attend(q, k, v, scoring, dropout)
    except BackendError as error:  # a kernel cannot be compiled, which is known from now on
        other = _choose(q, k, v, scoring, dropout).backend
        if backend is not None or other == name:
            raise
        warnings.warn(f"backend={other!r} computes what {name!r} cannot. {error}", stacklevel=2)
        return BACKENDS[other].attend(q, k, v, scoring, dropout)


def explain(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    v: Float[Tensor, "B K S E"],
    *,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Bias | Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
) -> "Explanation":
    """Which backend `attention` would use for these inputs, and why. Attention is not computed.

    >>> import torch
    >>> from glassformer.functional import Causal
    >>> q = torch.zeros(1, 2, 6, 16)
    >>> print(explain(q, q, q, mask=Causal()))  # doctest: +ELLIPSIS
    sdpa: so few keys that a dense mask costs nothing, and NaN stays visible
    ...
    """
    if autocast_dtype(q) is not None:
        q, k, v, bias = cast_operands(q, k, v, bias)
    scoring = check_scoring(q, k, mask=mask, bias=bias, scale=scale, softcap=softcap)
    check_values(q, k, v, dropout)
    choice = _choose(q, k, v, scoring, dropout)
    verdicts = {name: b.refusal(q, k, v, scoring, dropout) for name, b in BACKENDS.items()}
    return Explanation(choice.backend, choice.reason, verdicts)


@dataclass(frozen=True)
class Explanation:
    """The chosen backend. `refusals` says why a backend cannot compute the call, or None."""

    backend: str
    reason: str
    refusals: dict[str, str | None]

    def __str__(self) -> str:
        lines = [f"{self.backend}: {self.reason}"]
        for name, refusal in self.refusals.items():
            if name != self.backend:
                lines.append(f"  {name}: {f'no, {refusal}' if refusal else 'possible'}")
        return "\n".join(lines)


class _Choice(NamedTuple):
    backend: str
    reason: str


_FORMS = {
    "few": "so few keys that a dense mask costs nothing, and NaN stays visible",
    "none": "nothing is hidden, so the fused kernel needs no mask",
    "is_causal": "causal with L = S is a flag of the fused kernel",
    "tail": "causal with L > S: the first L − S queries see nothing, the rest take the causal flag",
    "lower_right": "causal with L < S has a fused kernel on CUDA",
}


def _choose(q: Tensor, k: Tensor, v: Tensor, scoring: Scoring, dropout: float) -> _Choice:
    B, _, L, S = scoring.extent
    if not (B and L and S):
        return _Choice("reference", "there is nothing to attend to, and the definition says so")
    if padded.refusal(q, k, v, scoring, dropout) is None:
        return _Choice("padded", "packed texts of known lengths, computed side by side")
    refused = sdpa.refusal(q, k, v, scoring, dropout)
    if (reason := _reason_for_native(q, k, v, scoring, dropout, refused)) is not None:
        return _Choice("native", reason)
    if refused is None:
        form = sdpa.form(q, scoring)
        if form != "dense":
            return _Choice("sdpa", _FORMS[form])
    if is_traced(q):
        # The others read tensors while they plan, and have no forward-mode derivatives.
        inside = "inside a graph or a transform, where no value may be read"
        return _Choice("reference", refused) if refused else _Choice("sdpa", inside)
    on_cpu, cells = q.device.type == "cpu", L * S
    if refused is None and cells <= _SMALL:
        return _Choice("sdpa", f"{L} × {S} is small, so a dense mask or bias costs little")
    if not on_cpu and flex.refusal(q, k, v, scoring, dropout) is None:
        return _Choice(
            "flex", f"{refused or f'{L} × {S} is large'}; compiled once per kind of mask"
        )
    if refused is not None:
        return _Choice("streaming", refused)
    if cells > _LARGE:
        return _Choice("streaming", f"a dense mask of {L} × {S} would not fit")
    if on_cpu:
        share = Plan.of(scoring.extent, scoring.mask, q.device).share
        if share <= _SPARSE:
            return _Choice("streaming", f"{1 - share:.0%} of the matrix is hidden and skipped")
    return _Choice("sdpa", f"a dense mask or bias of {L} × {S}, by the fused kernel")


def _reason_for_native(
    q: Tensor, k: Tensor, v: Tensor, scoring: Scoring, dropout: float, refused: str | None
) -> str | None:
    """Why the kernel in C is the fastest for a call; None if it is not."""
    if q.device.type != "cpu" or native.refusal(q, k, v, scoring, dropout) is not None:
        return None
    if refused is not None:
        return f"the kernel in C, because {refused}"
    case = native_timing.find_case(q, k, v, scoring)
    if case is None or (ratio := native_timing.measure(case)) > native_timing.GAIN:
        return None
    return f"the kernel in C takes {ratio:.2f} of the time of PyTorch's on this processor"


def _require_backend(
    name: str, q: Tensor, k: Tensor, v: Tensor, scoring: Scoring, dropout: float
) -> None:
    if name not in BACKENDS:
        raise ConfigError(f"backend must be one of {', '.join(BACKENDS)}; got {name!r}.")
    refusal = BACKENDS[name].refusal(q, k, v, scoring, dropout)
    if refusal is not None:
        chosen = _choose(q, k, v, scoring, dropout).backend
        raise BackendError(
            f"backend={name!r} cannot compute this exactly: {refusal}. "
            f"Leave backend out, or use backend={chosen!r}."
        )
