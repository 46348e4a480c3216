"""From logits to the next token: pure functions of one row of logits per sequence.

logits ─ repetition penalty ─ temperature ─ top-k ─ top-p ─ min-p ─→ logits ─ choose ─→ token
         └────────────────────────── adjust ───────────────────┘
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.errors import ConfigError, ShapeError


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How the next token is sampled; a setting of None is not applied.

    ::

        temperature          below 1 sharper, above 1 flatter; 0 is greedy
        top_k                keep the k likeliest tokens
        top_p                keep the nucleus: the fewest tokens with total probability p
        min_p                keep tokens at least min_p times as likely as the likeliest
        repetition_penalty   above 1, tokens that already occurred become less likely

    >>> Sampling(temperature=0.8, top_p=0.95)
    Sampling(temperature=0.8, top_k=None, top_p=0.95, min_p=None, repetition_penalty=None)
    """

    temperature: float | int = 1.0
    top_k: int | None = None
    top_p: float | int | None = None
    min_p: float | int | None = None
    repetition_penalty: float | int | None = None

    @property
    def is_argmax(self) -> bool:
        """Whether the token with the largest logit is chosen, whatever the text."""
        return self.temperature == 0 and self.repetition_penalty is None

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise ConfigError(
                "temperature must be at least 0 and finite; got "
                f"temperature={self.temperature}. Use 0 for the likeliest token, 1 for no change."
            )
        if self.top_k is not None and not (isinstance(self.top_k, int) and self.top_k >= 1):
            raise ConfigError(
                f"top_k must be a whole number, at least 1; got top_k={self.top_k}. "
                "Leave it out to keep every token."
            )
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ConfigError(
                f"top_p must be greater than 0 and at most 1; got top_p={self.top_p}. "
                "Leave it out to keep every token."
            )
        if self.min_p is not None and not 0 <= self.min_p <= 1:
            raise ConfigError(
                f"min_p must be at least 0 and at most 1; got min_p={self.min_p}. "
                "Leave it out to keep every token."
            )
        if self.repetition_penalty is not None and not 0 < self.repetition_penalty < math.inf:
            raise ConfigError(
                "repetition_penalty must be greater than 0 and finite; got "
                f"repetition_penalty={self.repetition_penalty}. Use 1.2 to discourage repetition."
            )


GREEDY = Sampling(temperature=0)


def adjust(
    logits: Float[Tensor, "B V"],
    sampling: Sampling,
    seen: Int[Tensor, "B L"] | None = None,
    *,
    mask: Bool[Tensor, "B L"] | None = None,
) -> Float[Tensor, "B V"]:
    """Apply the sampling settings to logits; tokens that may not be sampled get −inf.

    ::

        1  penalty r    seen tokens: x / r, as in Keskar et al. 2019, §4.1, but x · r below 0,
                        where dividing would make them likelier
        2  temperature  x / temperature, unless it is 0
        3  top-k        drop x below the k-th largest; ties with the k-th stay
        4  top-p        keep the smallest set whose probability reaches p, at least one token,
                        lower ids first among ties (Holtzman et al. 2020, §3.1)
        5  min-p        drop probabilities below min_p · the largest (Nguyen et al. 2024)

    `seen` are the tokens so far; `mask` is True where a token counts and False at padding.
    The result is in float32 or better.

    >>> logits = torch.tensor([[4.0, 3.0, 2.0, -1.0]])
    >>> adjust(logits, Sampling(top_k=2, repetition_penalty=2.0), seen=torch.tensor([[0, 3]]))
    tensor([[2., 3., 2., -inf]])
    >>> adjust(logits, Sampling(temperature=0.5, min_p=0.1))
    tensor([[8., 6., -inf, -inf]])
    """
    _check_rank(logits)
    _check_seen(logits, sampling, seen, mask)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if sampling.repetition_penalty is not None and seen is not None:
        logits = _penalize(logits, sampling.repetition_penalty, seen, mask)
    if sampling.temperature not in (0, 1):
        logits = _temper(logits, sampling.temperature)
    # Each filter below selects what to drop, never what to keep: NaN compares as false, so a row of
    # NaN passes unchanged and `choose` can report it.
    if sampling.top_k is not None:
        least = logits.topk(min(sampling.top_k, logits.shape[1])).values[:, -1:]  # (B, V) → (B, 1)
        logits = logits.masked_fill(logits < least, -math.inf)
    # At p = 1, rounding of the cumulative sum could drop the last tokens of a long tail.
    if sampling.top_p is not None and sampling.top_p < 1:
        # Ranked by logits: different logits may round to the same probability.
        order = logits.argsort(dim=-1, descending=True, stable=True)
        ranked = _probabilities(logits).gather(1, order)
        before = ranked.cumsum(dim=-1) - ranked  # mass of the likelier tokens: 0 for the first
        # A p that rounds to 0 would drop even the first token, which has 0 before it.
        over = before >= max(sampling.top_p, torch.finfo(before.dtype).tiny)
        removed = over.scatter(1, order, over)  # from rank order to id order
        logits = logits.masked_fill(removed, -math.inf)
    if sampling.min_p is not None:
        probabilities = _probabilities(logits)
        least = sampling.min_p * probabilities.amax(dim=-1, keepdim=True)  # (B, V) → (B, 1)
        logits = logits.masked_fill(probabilities < least, -math.inf)
    return logits


def exclude_tokens(
    logits: Float[Tensor, "B V"],
    never: Sequence[int],
    forbidden: Bool[Tensor, "B V"] | None = None,
) -> Float[Tensor, "B V"]:
    """The logits with −inf for excluded tokens: `never` in all rows, `forbidden` in each its own.

    >>> exclude_tokens(torch.tensor([[1.0, 2.0, 3.0]]), [2])
    tensor([[1., 2., -inf]])
    """
    check_never(never, logits.shape[1])
    if forbidden is not None:
        logits = logits.masked_fill(forbidden.to(logits.device), -math.inf)
    if not never:
        return logits
    columns = torch.tensor(list(never), device=logits.device)
    return logits.index_fill(1, columns, -math.inf)


def check_never(never: Sequence[int], vocab_size: int) -> None:
    """Reject excluded tokens that are not in the vocabulary."""
    if never and not 0 <= min(never) <= max(never) < vocab_size:
        raise ConfigError(
            f"never must hold token ids from 0 to {vocab_size - 1}; got {tuple(never)}."
        )


def choose(
    logits: Float[Tensor, "B V"], sampling: Sampling, generator: torch.Generator | None = None
) -> Int[Tensor, " B"]:
    """Choose one token per row of adjusted logits: the likeliest at temperature 0, else sampled.

        token ~ softmax(logits)

    Of `sampling` only a temperature of 0 matters here; `adjust` applies the rest. Temperature 0
    breaks ties by the lowest id. A logit of +inf is certain to be chosen. Inside torch.compile,
    pass no generator and seed with torch.manual_seed: compiled graphs take no generators.

    >>> sampling = Sampling(temperature=0)
    >>> choose(adjust(torch.tensor([[1.0, 5.0, 5.0]]), sampling), sampling)
    tensor([1])
    >>> choose(torch.tensor([[1.0, -torch.inf], [0.0, torch.inf]]), Sampling())
    tensor([0, 1])
    """
    _check_rank(logits)
    if _may_read(logits):
        _check_choice(logits)
    if sampling.temperature == 0:
        return logits.argmax(dim=-1)  # (B, V) → (B,); ties: the first
    probabilities = _probabilities(logits)
    if _may_read(logits):
        return torch.multinomial(probabilities, 1, generator=generator).squeeze(1)
    # What multinomial computes for one sample, without its check, which reads values.
    waits = torch.empty_like(probabilities).exponential_(generator=generator)
    return (probabilities / waits).argmax(dim=-1)


def _may_read(tensor: Tensor) -> bool:
    """Whether values can be read: not while a graph is compiled or captured."""
    if torch.compiler.is_compiling():
        return False
    return not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())


def _probabilities(logits: Float[Tensor, "B V"]) -> Float[Tensor, "B V"]:
    # softmax subtracts the largest, and ∞ − ∞ is NaN: infinite logits share the probability.
    infinite = logits == math.inf
    certain = torch.zeros_like(logits).masked_fill(~infinite, -math.inf)
    logits = torch.where(infinite.any(dim=-1, keepdim=True), certain, logits)
    return logits.softmax(dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))


def _penalize(
    logits: Float[Tensor, "B V"],
    penalty: float | int,
    seen: Int[Tensor, "B L"],
    mask: Bool[Tensor, "B L"] | None,
) -> Float[Tensor, "B V"]:
    n_rows, vocab_size = logits.shape
    # Padding is scattered into an extra column and dropped: its id may also be a real token's, and
    # neither may overwrite the other.
    ids = seen.long() if mask is None else seen.long().where(mask, vocab_size)
    there = torch.zeros(n_rows, vocab_size + 1, dtype=torch.bool, device=logits.device)
    there = there.scatter(1, ids, True)[:, :vocab_size]  # (B, L) → (B, V)
    penalized = torch.where(logits < 0, logits * penalty, logits / penalty)
    return torch.where(there, penalized, logits)


def _temper(logits: Float[Tensor, "B V"], temperature: float | int) -> Float[Tensor, "B V"]:
    temperature = max(temperature, torch.finfo(logits.dtype).tiny)  # less would round to 0
    top = logits.amax(dim=-1, keepdim=True)  # (B, V) → (B, 1)
    # At very low temperatures several quotients may overflow and seem equally likely. Softmax is
    # shift-invariant: with the largest logit subtracted, the largest is 0 and the others negative.
    overflows = (top / temperature).isinf() & top.isfinite()
    return (logits - top.where(overflows, 0.0)) / temperature


def _check_rank(logits: Tensor) -> None:
    if logits.ndim != 2 or logits.shape[1] < 1:
        raise ShapeError(
            "logits must be (B, V) with at least one token to choose from; got "
            f"{tuple(logits.shape)}. Take the last position, logits[:, -1], of (B, L, V)."
        )


def _check_seen(
    logits: Tensor, sampling: Sampling, seen: Tensor | None, mask: Tensor | None
) -> None:
    if seen is None:
        if sampling.repetition_penalty is not None:
            raise ConfigError(
                "repetition_penalty needs the tokens so far; got "
                f"repetition_penalty={sampling.repetition_penalty} and seen=None. Pass seen=tokens."
            )
        if mask is not None:
            raise ConfigError("mask needs the tokens it applies to; got seen=None. Pass both.")
        return
    if seen.ndim != 2 or len(seen) != len(logits):
        raise ShapeError(
            f"seen must be (B, L) with the same B as the logits; got {tuple(seen.shape)} for "
            f"logits {tuple(logits.shape)}."
        )
    if mask is not None and mask.shape != seen.shape:
        raise ShapeError(
            f"mask must have the shape of seen; got mask {tuple(mask.shape)} for seen "
            f"{tuple(seen.shape)}."
        )
    if sampling.repetition_penalty is None or not _may_read(logits):
        return
    outside = (seen < 0) | (seen >= logits.shape[1])
    outside = outside if mask is None else outside & mask
    if outside.any():
        raise ConfigError(
            f"seen must hold token ids from 0 to {logits.shape[1] - 1}; got "
            f"{int(seen[outside][0])}. Mark padding with mask=False."
        )


def _check_choice(logits: Tensor) -> None:
    top = logits.amax(dim=-1)  # (B, V) → (B,); NaN wherever the row has one
    if (top > -math.inf).all():
        return
    row = int((~(top > -math.inf)).nonzero()[0])
    if top[row].isnan():
        raise ConfigError(
            f"logits must be numbers; got NaN in row {row}. Look for an overflow or a division by "
            "zero in the model."
        )
    raise ConfigError(
        f"Every row of logits must leave a token to choose; got nothing but -inf in row {row}. "
        "Exclude fewer tokens."
    )
