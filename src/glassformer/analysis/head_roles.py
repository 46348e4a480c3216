"""The role of a head, scored on its exact weights.

Rows of a long text are sampled evenly; each sampled row is exact. A score is how much of the
attention goes where the role says, beyond what even attention would give:

    score = (share − share of even attention) / (1 − share of even attention)

Many heads of decoders attend to the first token (an attention sink). That is a role of its own; the
others are scored without that column, so that it hides nothing.

These roles say where a head looks. With the residual stream, "copying" says what it does there: the
share of its attention on tokens whose own logit it raises, as name movers do.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.analysis.copied_tokens import find_copied
from glassformer.analysis.head_removal import HeadEffects
from glassformer.tracing.site import Site
from glassformer.tracing.stream import Stream

ROLES = (
    "previous",
    "next",
    "self",
    "duplicate",
    "induction",
    "delimiter",
    "positional",
    "broad",
    "distant",
    "copying",
)
_MOST_CELLS = 1 << 24
_NEAR = 16  # tokens on each side in which a positional pattern is sought
_LEAST = 0.3  # below this score a head has no role of its own
_MOST_KEYS = 32  # that are looked up in the vocabulary
_VAGUE = ("mixed", "broad", "distant")  # where copying says more about a head


@dataclass(frozen=True, kw_only=True)
class Role:
    """One head: its best role, how clearly, and what every role scores."""

    layer_head: tuple[str, int]
    role: str  # one of ROLES, or "mixed"
    score: float
    sink: float  # the share of attention on the first token
    scores: dict[str, float]
    effect: float | None = None  # KL of the predictions without the head, where it was measured


def roles(
    site: Site,
    tokens: Int[Tensor, " L"] | None = None,
    *,
    delimiters: Collection[int] = (),
    stream: Stream | None = None,
    effects: HeadEffects | None = None,
    sequence: int = 0,
) -> list[Role]:
    """The role of every head of a self-attention site.

    `tokens` are the ids of the text; without them duplicate, induction and delimiter heads cannot
    be scored. `delimiters` are the ids of the delimiters. With `stream`, trace.residual(), heads
    that copy what they attend to are scored as well; one without a clear pattern is named by it.
    A role says what a head does, not that it matters: `effects`, gf.head_effects(trace), adds that.

    >>> import torch
    >>> from glassformer.functional import Causal
    >>> from glassformer.tracing import record
    >>> positions = torch.nn.functional.one_hot(torch.arange(8)).float()[None, None]
    >>> site = record(50 * positions.roll(1, -2), positions, positions, mask=Causal())
    >>> roles(site)[0].role
    'previous'
    """
    H, L, S = site.shape[1:]
    n_rows = max(1, min(L, 512, _MOST_CELLS // max(1, H * S)))
    first = min(2, L - 1)  # the first rows have no choice
    rows = torch.linspace(first, L - 1, n_rows).round().long().unique()
    weights = site.weights(rows=rows.tolist(), sequence=sequence).float().cpu()  # H R S
    allowed = site.allowed(rows=rows, sequence=sequence).cpu()
    positions = site.query_positions.cpu()[rows]
    marks = _mark_targets(positions, S, tokens, delimiters)
    sink = weights[..., 0].mean(-1)
    rest, open_ = weights.clone(), allowed.clone()
    rest[..., 0], open_[..., 0] = 0.0, False
    total = rest.sum(-1, keepdim=True)
    rest = rest / total.clamp(min=1e-12)
    counted = (total[..., 0] > 1e-6) & (open_.sum(-1) > 1)  # rows in which there is something left
    even = open_ / open_.sum(-1, keepdim=True).clamp(min=1)
    found = {name: _score_beyond_chance(rest, even, mark, counted) for name, mark in marks.items()}
    found["positional"] = _score_positional(rest, positions, counted)
    found["broad"] = _score_broad(rest, open_, counted)
    if stream is not None and tokens is not None and len(tokens) == S > 1:
        found["copying"] = _score_copying(site, stream, tokens.cpu(), rest, counted, sequence)
    chosen = [
        _choose_role(site.name, number, float(sink[h]), {n: float(s[h]) for n, s in found.items()})
        for h, number in enumerate(site.head_numbers)
    ]
    if effects is None:
        return chosen
    return [replace(role, effect=effects.of(*role.layer_head)) for role in chosen]


def _mark_targets(
    positions: Int[Tensor, " R"], S: int, tokens: Tensor | None, delimiters: Collection[int]
) -> dict[str, Bool[Tensor, "R S"]]:
    """The keys to which each role would attend."""
    ahead = torch.arange(S) - positions[:, None]
    marks = {
        "previous": ahead == -1,
        "next": ahead == 1,
        "self": ahead == 0,
        "distant": ahead.abs() > max(S // 4, _NEAR),
    }
    if tokens is None or len(tokens) != S:
        return marks
    own = tokens.cpu()[positions.clamp(0, S - 1)]
    same = tokens.cpu()[None] == own[:, None]
    marks["duplicate"] = same & (ahead != 0)
    after = torch.zeros_like(same)
    after[:, 1:] = same[:, :-1]  # after an earlier copy of the query's own token
    marks["induction"] = after & (ahead <= 0)
    if delimiters:
        marks["delimiter"] = torch.isin(tokens.cpu(), torch.tensor(sorted(delimiters))).expand_as(
            same
        )
    return marks


def _score_beyond_chance(
    rest: Float[Tensor, "H R S"],
    even: Float[Tensor, "H R S"],
    mark: Bool[Tensor, "R S"],
    counted: Bool[Tensor, "H R"],
) -> Float[Tensor, " H"]:
    there = counted & mark.any(-1)  # a row without such a place says nothing about the role
    share = _mean((rest * mark).sum(-1), there)
    chance = _mean((even * mark).sum(-1), there)
    return ((share - chance) / (1 - chance).clamp(min=1e-6)).where(there.any(-1), 0.0)


def _score_positional(
    rest: Float[Tensor, "H R S"], positions: Int[Tensor, " R"], counted: Bool[Tensor, "H R"]
) -> Float[Tensor, " H"]:
    """The share of the weights that the mean pattern around the query explains."""
    S = rest.shape[-1]
    places = positions[:, None] + torch.arange(-_NEAR, _NEAR + 1)
    inside = (places >= 0) & (places < S)
    near = rest.gather(-1, places.clamp(0, S - 1).expand(len(rest), -1, -1)) * inside
    mean = _mean(near.transpose(1, 2), counted[:, None]).square().sum(-1)
    whole = _mean(rest.square().sum(-1), counted)
    return mean / whole.clamp(min=1e-12)


def _score_broad(
    rest: Float[Tensor, "H R S"], open_: Bool[Tensor, "H R S"], counted: Bool[Tensor, "H R"]
) -> Float[Tensor, " H"]:
    """Entropy relative to its maximum: 1 is even attention."""
    entropy = -(rest * rest.clamp(min=1e-30).log()).sum(-1)
    return _mean(entropy / open_.sum(-1).clamp(min=2).log(), counted)


def _score_copying(
    site: Site,
    stream: Stream,
    tokens: Int[Tensor, " S"],
    rest: Float[Tensor, "H R S"],
    counted: Bool[Tensor, "H R"],
    sequence: int,
) -> Float[Tensor, " H"]:
    """The share of the attention on sampled tokens that is on tokens which the head copies."""
    S = len(tokens)
    keys = torch.linspace(1, S - 1, min(_MOST_KEYS, S - 1)).round().long().unique()
    copied = find_copied(site, stream, tokens, keys, sequence=sequence)
    received = (rest[:, :, keys] * counted[..., None]).sum(1)  # H N
    return (received * copied).sum(-1) / received.sum(-1).clamp(min=1e-12)


def _mean(values: Tensor, counted: Tensor) -> Tensor:
    return (values * counted).sum(-1) / counted.sum(-1).clamp(min=1)


def _choose_role(site: str, head: int, sink: float, scores: dict[str, float]) -> Role:
    # A head that attends to one relative position is named by it, not as positional.
    by_place = max(scores.get(n, 0.0) for n in ("previous", "next", "self"))
    weighed = dict(scores)
    if by_place > _LEAST:
        weighed["positional"] = 0.0
    weighed["broad"] = 0.0 if scores["broad"] < 0.85 else scores["broad"] * 0.6
    copying = weighed.pop("copying", 0.0)
    best = max(weighed, key=weighed.__getitem__)
    named = best if weighed[best] >= _LEAST else "mixed"
    score = weighed[best]
    if named in _VAGUE and copying >= _LEAST:
        named, score = "copying", copying
    if sink >= 0.9:  # hardly any attention is left
        named, score = "sink", sink
    return Role(
        layer_head=(site, head),
        role=named,
        score=score,
        sink=sink,
        scores={"sink": sink, **scores},
    )
