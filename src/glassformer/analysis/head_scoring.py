"""Scores of heads by behaviour: random tokens, then the same tokens again.

Random text has no grammar and no meaning, so that a head which finds the earlier copy of a token,
or the token after it, can only do so by matching (Elhage et al. 2021, Olsson et al. 2022):

    b  A B C D  A B C D
                  │ ↑         b first, A B C D distinct random tokens
    query B ──────┘           previous   attends to A, the token before it
                              duplicate  attends to the earlier B
                              induction  attends to the earlier C, what followed B
                              sink       attends to b

A score is the mean weight of those cells, from 0 to 1. Copying is read off the weights instead.
"""

import warnings
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.analysis.token_model import TokenModel
from glassformer.analysis.weight_circuits import circuits
from glassformer.errors import RecordingWarning, TraceError
from glassformer.functional import attention_tile
from glassformer.tracing.context import watch
from glassformer.tracing.site import Site

SCORES = ("previous", "duplicate", "induction", "sink", "copying")
_LENGTH = 50  # of the random tokens, unless given
_MOST_CELLS = 1 << 24


@dataclass(eq=False, frozen=True, kw_only=True)
class HeadScores:
    """The scores of every head, NaN where a head has none."""

    model: str
    heads: list[tuple[str, int]]  # site and number
    scores: dict[str, Float[Tensor, " N"]]
    chance: dict[str, float]  # what even attention over the visible keys would score
    sequences: int
    length: int
    seed: int
    refusals: dict[str, str] = field(default_factory=dict)  # scores or sites that are missing

    def top(self, score: str, n: int = 5) -> list[tuple[str, int, float]]:
        """The n heads that score highest: site, head, score."""
        values = self._require(score).nan_to_num(-torch.inf)
        best = values.topk(min(n, int(values.isfinite().sum())))
        return [
            (*self.heads[i], value)
            for value, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ]

    def of(self, site: str, head: int) -> dict[str, float]:
        """Every score of one head."""
        if (site, head) not in self.heads:
            known = f"{self.heads[0]} … {self.heads[-1]}"
            raise TraceError(f"The heads scored are {known}; got {(site, head)}.")
        i = self.heads.index((site, head))
        return {name: float(values[i]) for name, values in self.scores.items()}

    def _require(self, score: str) -> Float[Tensor, " N"]:
        if score not in self.scores:
            known = f"A score is one of {', '.join(self.scores)}; got {score!r}."
            raise TraceError(self.refusals.get(score, known))
        return self.scores[score]

    def __str__(self) -> str:
        lines = [
            f"{len(self.heads)} heads of {self.model} on {self.sequences} × {self.length} random "
            f"tokens, each said twice (seed {self.seed})",
            f"  {'score':<10} {'chance':>6}   heads that score highest",
        ]
        for name in self.scores:
            chance = f"{self.chance[name]:.3f}" if name in self.chance else ""
            best = "   ".join(f"{site}.{h} {value:.2f}" for site, h, value in self.top(name, 3))
            lines.append(f"  {name:<10} {chance:>6}   {best}")
        lines += [f"  {name}: {why}" for name, why in self.refusals.items()]
        return "\n".join(lines)

    __repr__ = __str__


def head_scores(
    model: nn.Module,
    *,
    sequences: int = 4,
    length: int | None = None,
    seed: int = 0,
    copying: bool = True,
) -> HeadScores:
    """Which heads look back by one, find copies, continue them, rest on the first token, or copy.

    One pass over `sequences` random sequences of `length` distinct tokens (default: 50, or what the
    model can read), each repeated; weights are derived from operands, row by row. `copying` is that
    of `gf.circuits`, and takes longer than the rest. A high score on random text says what a head
    can do, not that it does so in another text, nor that the model depends on it.

    >>> import glassformer as gf
    >>> found = gf.head_scores(gf.load("writer"), copying=False)
    >>> found.top("previous", 1)[0][:2]
    ('decoder.2.self', 2)
    """
    subject = TokenModel(model, "head_scores")
    length = _check_length(subject, length)
    if sequences < 1:
        raise TraceError(f"sequences must be at least 1; got sequences={sequences}.")
    tokens = draw_repeated(subject, sequences, length, seed)
    with warnings.catch_warnings(), subject.evaluating():
        warnings.simplefilter("ignore", RecordingWarning)  # refusals are said here
        with watch(subject.model) as trace:
            subject(tokens)
    targets = _find_targets(length)
    heads: list[tuple[str, int]] = []
    refusals: dict[str, str] = dict(trace.run.refusals)
    found: dict[str, list[Tensor]] = {name: [] for name in targets}
    even: dict[str, list[Tensor]] = {name: [] for name in targets}
    for site in trace:
        if ".self" not in site.name:
            continue
        if (site.shape[0], site.shape[2]) != tokens.shape:
            refusals[site.name] = f"{site.name} does not attend token by token."
            continue
        heads += [(site.name, head) for head in site.head_numbers]
        for name, (rows, keys) in targets.items():
            found[name].append(_mean_weight(site, rows, keys))
            even[name].append((1 / site.visible()[:, rows].float()).mean(-1).cpu())
    if not heads:
        raise TraceError(next(iter(refusals.values()), f"{subject.name} has no self-attention."))
    scores = {name: torch.cat(each) for name, each in found.items()}
    if copying:
        try:
            scores["copying"] = _score_copying(subject, heads)
        except TraceError as error:
            refusals["copying"] = str(error)
    return HeadScores(
        model=subject.name,
        heads=heads,
        scores=scores,
        chance={name: float(torch.cat(each).mean()) for name, each in even.items()},
        sequences=sequences,
        length=length,
        seed=seed,
        refusals=refusals,
    )


def draw_repeated(model: TokenModel, sequences: int, length: int, seed: int) -> Int[Tensor, "B L"]:
    """Distinct random tokens said twice, behind the token with which the model begins a text."""
    known = model.plain_tokens
    generator = torch.Generator().manual_seed(seed)
    picked = [torch.randperm(len(known), generator=generator)[:length] for _ in range(sequences)]
    once = known[torch.stack(picked)]
    first = known[:1] if model.begin is None else torch.tensor([model.begin])
    return torch.cat([first.expand(sequences, 1), once, once], dim=1).to(model.device)


def _check_length(model: TokenModel, length: int | None) -> int:
    n, longest = len(model.plain_tokens), model.max_len
    most = n if longest is None else min(n, (longest - 1) // 2)
    if length is None:
        length = min(_LENGTH, most)
    if not 2 <= length <= most:
        raise TraceError(
            f"length must be 2 … {most} tokens for {model.name}, which reads each twice; got "
            f"length={length}."
        )
    return length


def _find_targets(length: int) -> dict[str, tuple[Tensor, Tensor]]:
    """For each score the queries, and the key that each of them would attend to."""
    L = 1 + 2 * length
    again, behind = torch.arange(1 + length, L), torch.arange(2, L)
    return {
        "previous": (behind, behind - 1),
        "duplicate": (again, again - length),
        "induction": (again, again - length + 1),
        "sink": (behind, torch.zeros_like(behind)),
    }


def _mean_weight(
    site: Site, rows: Int[Tensor, " R"], keys: Int[Tensor, " R"]
) -> Float[Tensor, " H"]:
    """The mean of the weights of one key for each row, over all sequences."""
    B, H, L, S = site.shape
    device = site.q.device
    total = torch.zeros(H, dtype=torch.float64, device=device)
    step = max(1, _MOST_CELLS // (B * H * S))
    for part, columns in zip(rows.split(step), keys.split(step), strict=True):
        tile = attention_tile(
            site.q, site.k, site.lse, part.to(device), slice(0, S), **site.options
        )  # B H R S
        at = (columns + S - L).to(device)[None, None, :, None].expand(B, H, -1, 1)
        total += tile.gather(-1, at).double().sum((0, 2, 3))
    return (total / (B * len(rows))).float().cpu()


def _score_copying(model: TokenModel, heads: list[tuple[str, int]]) -> Float[Tensor, " N"]:
    found = circuits(model.model)
    by_site: dict[str, Tensor] = {}
    reason: TraceError | None = None
    for site in dict.fromkeys(site for site, _ in heads):
        try:
            by_site[site] = found.copying(site)
        except TraceError as error:
            reason = error
    if reason is not None and not by_site:
        raise reason
    return torch.tensor(
        [float(by_site[site][head]) if site in by_site else torch.nan for site, head in heads]
    )
