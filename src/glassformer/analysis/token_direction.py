"""How the score of a token sees the residual stream: a direction, and what is there without it."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.analysis.vocabulary import resolve_token
from glassformer.errors import TraceError
from glassformer.tracing.frozen_readout import FrozenReadout
from glassformer.tracing.readout import Readout
from glassformer.tracing.stream import Stream


@dataclass(eq=False, frozen=True, kw_only=True)
class TokenDirection:
    """The score of a token, or a difference of two, as a product with the end of the stream."""

    tokens: list[int]
    direction: Float[Tensor, " C"]
    constants: dict[str, float]  # what norms and biases add by themselves
    logit: float  # the model's; where scores are capped, before the cap
    frozen: list[str]


def choose_row(stream: Stream, readout: Readout, position: int | None, sequence: int) -> int:
    """The row of a position; by default that which a classifier reads, else the last."""
    n = stream.start.shape[1]
    if position is not None:
        if not -n <= position < n:
            raise TraceError(f"There are {n} positions; got position={position}.")
        return position % n
    pooled = readout.find_pooled(sequence)
    if pooled is None:
        return n - 1
    rows = range(n) if stream.rows is None else stream.rows
    if pooled not in rows:
        raise TraceError(f"The classes are read at position {pooled}, which was not recorded.")
    return rows.index(pooled)


def _state_pooling(stream: Stream, readout: Readout, row: int, sequence: int) -> list[str]:
    pooled = readout.find_pooled(sequence)
    if pooled is None or pooled == (row if stream.rows is None else stream.rows[row]):
        return []
    return [f"the position: the model reads its classes at {pooled}, not here"]


def find_direction(
    stream: Stream, readout: Readout, asked: list[int | str], *, sequence: int, row: int
) -> TokenDirection:
    """The direction of the first token, less that of the second if there is one."""
    x = stream.end[sequence, row]
    signs = torch.tensor([1.0, -1.0][: len(asked)], dtype=torch.float64)
    if readout.matrix is None:
        found = _find_frozen(readout, asked, signs, x)
        return replace(
            found, frozen=[*found.frozen, *_state_pooling(stream, readout, row, sequence)]
        )
    tokens = [resolve_token(token, len(readout.matrix), readout.vocabulary) for token in asked]
    end, constants = x.double().cpu(), {}
    along = seen = readout.factor * (signs @ readout.matrix[tokens].double().cpu())
    if readout.norm is not None:
        seen = readout.norm.pull(along, end)
        constants[f"{stream.name}.norm"] = float(along @ readout.norm.offset(end))
    if readout.bias is not None:
        constants["bias"] = float(signs @ readout.bias[tokens].double().cpu())
    logit = _read_score(readout, x, tokens, signs)
    if readout.is_capped:
        norm = readout.norm
        normed = end if norm is None else norm.push(end, end) + norm.offset(end)
        logit = float(along @ normed) + constants.get("bias", 0.0)
    frozen = [] if readout.norm is None else ["the size that the final norm divides by"]
    frozen += _state_pooling(stream, readout, row, sequence)
    return TokenDirection(
        tokens=tokens, direction=seen, constants=constants, logit=logit, frozen=frozen
    )


def _find_frozen(
    readout: Readout, asked: list[int | str], signs: Tensor, x: Float[Tensor, " C"]
) -> TokenDirection:
    """Through a dense layer and a nonlinearity, as masked language models have them."""
    found = FrozenReadout(readout, x)
    tokens = [resolve_token(token, found.n_tokens, readout.vocabulary) for token in asked]
    direction, constant = found.measure(tokens, signs)
    return TokenDirection(
        tokens=tokens,
        direction=direction,
        constants={"bias": constant},
        logit=_read_score(readout, x, tokens, signs),
        frozen=found.names,
    )


def _read_score(readout: Readout, x: Tensor, tokens: list[int], signs: Tensor) -> float:
    return float(signs @ readout(x[None, None])[0, 0].double().cpu()[tokens])
