"""Direct logit attribution: what each part of a model adds to the score of a token.

The score is linear in the residual stream once norms are frozen at the values that they had. So
every part, every head and every source token has an exact share, and the shares add up.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.analysis.lens import label_tokens, name_positions, require_readout
from glassformer.analysis.vocabulary import resolve_token
from glassformer.errors import TraceError
from glassformer.tracing.readout import Readout
from glassformer.tracing.site import Site
from glassformer.tracing.stream import Part, Stream
from glassformer.tracing.trace import Trace

By = Literal["part", "head", "source"]


@dataclass(frozen=True, slots=True)
class Share:
    """What one part, head or look adds to a score."""

    name: str  # decoder.3.self, decoder.3.self.2 (head 2), decoder.3.self.2 ← cat
    value: float
    part: str
    head: int | None = None
    source: int | None = None


@dataclass(eq=False, frozen=True, kw_only=True)
class Attribution:
    """The shares of a score, and how far their sum is from what the model computed."""

    token: str
    against: str | None
    position: str
    shares: list[Share]
    logit: float  # the model's; of a difference of tokens, the difference
    frozen: list[str]  # what was held at the value that it had

    @property
    def remainder(self) -> float:
        """The logit less the sum of the shares; `attribute` refuses more than rounding."""
        return self.logit - sum(share.value for share in self.shares)

    def top(self, n: int = 10) -> list[Share]:
        """The n largest shares, for or against."""
        return sorted(self.shares, key=lambda share: -abs(share.value))[:n]

    def __str__(self) -> str:
        asked = self.token if self.against is None else f"{self.token} − {self.against}"
        lines = [f"{asked} at {self.position}: {self.logit:+.3f}"]
        lines += [f"  {share.value:+8.3f}  {share.name}" for share in self.top()]
        left = len(self.shares) - 10
        if left > 0:
            rest = sum(s.value for s in self.shares) - sum(s.value for s in self.top())
            lines.append(f"  {rest:+8.3f}  {left} others")
        lines.append(f"  {self.remainder:+8.1e}  remainder")
        return "\n".join(lines)


def attribute(
    trace: Trace,
    token: int | str,
    *,
    against: int | str | None = None,
    by: By = "part",
    position: int = -1,
    stack: str | None = None,
    sequence: int = 0,
) -> Attribution:
    """What each part adds to the score of a token at a position, or to a difference of two.

    `by` splits attention further: into heads, or into what each head takes from each token. Norms
    on the way are frozen. Where a model caps its scores, the score before the cap is split.

    >>> import glassformer as gf
    >>> model = gf.load("translator")
    >>> with gf.watch(model, residual=True) as trace:
    ...     _ = gf.translate(model, "The cat sat.", to="fr", beams=1)
    >>> found = gf.attribute(trace, "</s>", by="head")
    >>> found.top(1)[0].part, abs(found.remainder) < 1e-4
    ('decoder.2.mlp', True)
    """
    if by not in ("part", "head", "source"):
        raise TraceError(f"by must be 'part', 'head' or 'source'; got {by!r}.")
    stream = trace.residual(stack)
    readout = require_readout(stream)
    matrix = readout.require_matrix()
    positions = name_positions(trace, stream, sequence)
    if not -len(positions) <= position < len(positions):
        raise TraceError(f"There are {len(positions)} positions; got position={position}.")
    row = position % len(positions)
    tokens = [find_token(readout, token)]
    tokens += [] if against is None else [find_token(readout, against)]
    signs = torch.tensor([1.0, -1.0][: len(tokens)], dtype=torch.float64)
    direction = readout.factor * (signs @ matrix[tokens].double().cpu())
    end = stream.end[sequence, row].double().cpu()
    shares = []
    seen = direction
    if readout.norm is not None:
        seen = readout.norm.pull(direction, end)
        shares += _constant(f"{stream.name}.norm", direction @ readout.norm.offset(end))
    if readout.bias is not None:
        shares += _constant("bias", signs @ readout.bias[tokens].double().cpu())
    measured = stream.directions(seen, sequence=sequence, row=row)
    parts = {part.name: part for part in stream.parts}
    for name, (value, along) in measured.items():
        part = parts.get(name)
        if by == "part" or part is None or part.kind not in ("self", "cross"):
            shares.append(Share(name, float(value @ along), name))
        else:
            shares += _split_attention(trace, part, along, row, sequence, by)
    scores = readout(stream.end[sequence : sequence + 1, row : row + 1])[0, 0].double().cpu()
    logit = float(signs @ scores[tokens])
    if readout.is_capped:
        logit = float(direction @ _norm(readout, end)) + float(
            0.0 if readout.bias is None else signs @ readout.bias[tokens].double().cpu()
        )
    labels = label_tokens(readout, tokens)
    found = Attribution(
        token=labels[0],
        against=labels[1] if against is not None else None,
        position=positions[row],
        shares=shares,
        logit=logit,
        frozen=_name_frozen(stream, readout, parts, by),
    )
    size = sum(abs(share.value) for share in shares)
    if abs(found.remainder) > torch.finfo(stream.start.dtype).eps ** 0.5 * max(size, 1e-30):
        raise TraceError(
            f"The shares must add up to the score, {found.logit:.4g}; they miss it by "
            f"{found.remainder:.2g}, which is more than rounding. Please report this model."
        )
    return found


def _split_attention(
    trace: Trace, part: Part, along: Tensor, row: int, sequence: int, by: By
) -> list[Share]:
    """The share of each head, or of each head and source; biases by themselves."""
    site = _require_heads(trace, part)
    writing = part.writing
    assert writing is not None
    weights = site.weights(rows=[row], sequence=sequence)[:, 0].double().cpu()  # H S
    v = site.v[sequence].double().cpu()
    v = v.repeat_interleave(site.n_heads // len(v), dim=0)  # H S E
    heads = torch.einsum("hs,hse->he", weights, v)
    matrix = writing.weight.double().cpu()
    if heads.numel() != matrix.shape[1]:
        raise TraceError(
            f"The heads of {part.name} must be what its matrix reads, {matrix.shape[1]} numbers; "
            f"they are {heads.numel()}."
        )
    written = matrix @ heads.flatten()
    bias = 0.0 if writing.bias is None else writing.bias.double().cpu()
    x, passed = written + bias, []
    for step in writing.then:
        passed.append((step, x))
        x = step.push(x, x) + step.offset(x)
    seen, constant = along, torch.zeros((), dtype=torch.float64)
    for step, before in reversed(passed):
        constant = constant + seen @ step.offset(before)
        seen = step.pull(seen, before)
    constant = constant + (seen * bias).sum()
    shares = [] if not float(constant) else _constant(f"{part.name}.bias", constant)
    of_inputs = (matrix.mT @ seen).view_as(heads)  # H E
    if by == "head":
        values = (heads * of_inputs).sum(-1)
        shares += [
            Share(f"{part.name}.{h}", float(value), part.name, h)
            for h, value in zip(site.head_numbers, values, strict=True)
        ]
    else:
        values = weights * torch.einsum("hse,he->hs", v, of_inputs)
        labels = _name_keys(trace, site, sequence)
        shares += [
            Share(f"{part.name}.{h} ← {labels[j]}", float(values[i, j]), part.name, h, j)
            for i, h in enumerate(site.head_numbers)
            for j in range(values.shape[1])
        ]
    _check_sum(part, shares, part.value[sequence, row].double().cpu(), along)
    return shares


def _check_sum(part: Part, shares: list[Share], value: Tensor, along: Tensor) -> None:
    """The proof of a split: its shares add up to what the part has added."""
    whole, total = float(value @ along), sum(share.value for share in shares)
    size = max(float(value.norm() * along.norm()), 1e-30)
    if abs(whole - total) > torch.finfo(part.value.dtype).eps ** 0.5 * size:
        raise TraceError(
            f"{part.name} cannot be split into heads: they add up to {total:.4g} of {whole:.4g}; "
            "between the heads and the stream lies more than a matrix."
        )


def _require_heads(trace: Trace, part: Part) -> Site:
    if part.writing is None:
        raise TraceError(
            f"{part.name} cannot be split into heads: no single matrix writes it to the stream."
        )
    if part.site is None:
        raise TraceError(f"{part.name} cannot be split: it is of more than one site.")
    site = trace[part.site]
    if site.heads is not None:
        raise TraceError(f"Of {part.site} only some heads were recorded; record it without heads=.")
    return site


def find_token(readout: Readout, token: int | str) -> int:
    """The number of a token, by its number or its text."""
    return resolve_token(token, len(readout.require_matrix()), readout.tokenizer)


def _norm(readout: Readout, end: Float[Tensor, " C"]) -> Float[Tensor, " C"]:
    return end if readout.norm is None else readout.norm.push(end, end) + readout.norm.offset(end)


def _constant(name: str, value: Tensor) -> list[Share]:
    return [Share(name, float(value), name)]


def _name_keys(trace: Trace, site: Site, sequence: int) -> list[str]:
    if site.keys in trace.run.texts:
        return trace.labels(site.keys, sequence=sequence)
    return [str(j) for j in range(site.shape[3])]


def _name_frozen(stream: Stream, readout: Readout, parts: dict[str, Part], by: By) -> list[str]:
    frozen = [] if readout.norm is None else ["the size that the final norm divides by"]
    if any(not isinstance(step, Part) for step in stream.steps):
        frozen.append("the sizes that the norms of the stream divide by")
    if by != "part":
        frozen.append("attention weights")
        if any(part.writing is not None and part.writing.then for part in parts.values()):
            frozen.append("the sizes that the norms of the parts divide by")
    return frozen
