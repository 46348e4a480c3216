"""The role of a head, scored on its exact weights.

Rows of a long text are sampled evenly; each sampled row is exact. A score is how much of the
attention goes where the role says, beyond what even attention would give:

    score = (share − share of even attention) / (1 − share of even attention)

Many heads of decoders attend to the first token (an attention sink). That is a role of its own; the
others are scored without that column, so that it hides nothing.

These roles say where a head looks. With the residual stream, "copying" says what it does there: the
share of its attention on tokens whose own logit it raises, as name movers do.
"""

from collections.abc import Callable, Collection
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
_PART_CELLS = 1 << 18  # at once: a hundredth of a second, after which `report` may stop it
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
    report: Callable[[float], None] | None = None,
) -> list[Role]:
    """The role of every head of a self-attention site.

    `tokens` are the ids of the text; without them duplicate, induction and delimiter heads cannot
    be scored. `delimiters` are the ids of the delimiters. With `stream`, trace.residual(), heads
    that copy what they attend to are scored as well; one without a clear pattern is named by it.
    A role says what a head does, not that it matters: `effects`, gf.head_effects(trace), adds that.
    `report` is called with the share that is done.

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
    copied = None
    if stream is not None and tokens is not None and len(tokens) == S > 1:
        keys = torch.linspace(1, S - 1, min(_MOST_KEYS, S - 1)).round().long().unique()
        copied = keys, find_copied(site, stream, tokens.cpu(), keys, sequence=sequence)
    sums = _Sums(H)
    done = 0
    for part in rows.split(max(1, _PART_CELLS // max(1, H * S))):
        weights = site.weights(rows=part.tolist(), sequence=sequence).float().cpu()  # H R S
        allowed = site.allowed(rows=part, sequence=sequence).cpu()
        positions = site.query_positions.cpu()[part]
        marks = _mark_targets(positions, S, tokens, delimiters)
        sums.add(weights, allowed, positions, marks, None if copied is None else copied[0])
        done += len(part)
        if report is not None:
            report(done / len(rows))
    found = sums.score()
    if copied is not None:
        found["copying"] = sums.share_of(copied[1])
    sink = sums.sink / len(rows)
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


class _Sums:
    """What the scores are made of, summed over rows: a long text is read in parts."""

    def __init__(self, n_heads: int) -> None:
        self.sink = torch.zeros(n_heads)
        self.rows = torch.zeros(n_heads)  # in which there is something beside the first key
        self.entropy = torch.zeros(n_heads)  # of a row, relative to its maximum
        self.near = torch.zeros(n_heads, 2 * _NEAR + 1)  # the pattern around the query
        self.squares = torch.zeros(n_heads)
        # By role: the share of attention there, that of even attention, rows with such a place.
        self.shares: dict[str, Float[Tensor, "3 H"]] = {}
        self.received: Tensor | float = 0.0  # H N, of the keys that are looked up

    def add(
        self,
        weights: Float[Tensor, "H R S"],
        allowed: Bool[Tensor, "H R S"],
        positions: Int[Tensor, " R"],
        marks: dict[str, Bool[Tensor, "R S"]],
        keys: Int[Tensor, " N"] | None,
    ) -> None:
        self.sink += weights[..., 0].sum(-1)
        rest, open_ = weights.clone(), allowed.clone()
        rest[..., 0], open_[..., 0] = 0.0, False
        total, n_open = rest.sum(-1), open_.sum(-1)
        rest /= total.clamp(min=1e-12)[..., None]
        counted = (total > 1e-6) & (n_open > 1)
        self.rows += counted.sum(-1)
        for name, mark in marks.items():
            there = counted & mark.any(-1)  # a row without such a place says nothing about the role
            share = (rest * mark).sum(-1)
            chance = (open_ & mark).sum(-1) / n_open.clamp(min=1)
            new = torch.stack([(share * there).sum(-1), (chance * there).sum(-1), there.sum(-1)])
            self.shares[name] = self.shares.get(name, 0.0) + new
        entropy = -(rest * rest.clamp(min=1e-30).log()).sum(-1)
        self.entropy += (entropy / n_open.clamp(min=2).log() * counted).sum(-1)
        places = positions[:, None] + torch.arange(-_NEAR, _NEAR + 1)
        inside = (places >= 0) & (places < rest.shape[-1])
        at = places.clamp(0, rest.shape[-1] - 1).expand(len(rest), -1, -1)
        self.near += (rest.gather(-1, at) * inside * counted[..., None]).sum(1)
        self.squares += (rest.square().sum(-1) * counted).sum(-1)
        if keys is not None:
            self.received += (rest[:, :, keys] * counted[..., None]).sum(1)

    def score(self) -> dict[str, Float[Tensor, " H"]]:
        found = {}
        for name, sums in self.shares.items():
            n = sums[2]
            share, chance = sums[:2] / n.clamp(min=1)
            found[name] = ((share - chance) / (1 - chance).clamp(min=1e-6)).where(n > 0, 0.0)
        n = self.rows.clamp(min=1)
        # The share of the weights that the mean pattern around the query explains.
        explained = (self.near / n[:, None]).square().sum(-1)
        found["positional"] = explained / (self.squares / n).clamp(min=1e-12)
        found["broad"] = self.entropy / n  # 1 is even attention
        return found

    def share_of(self, copied: Bool[Tensor, "H N"]) -> Float[Tensor, " H"]:
        """Of the attention on sampled tokens, the share on those which the head copies."""
        assert isinstance(self.received, Tensor)
        return (self.received * copied).sum(-1) / self.received.sum(-1).clamp(min=1e-12)


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
