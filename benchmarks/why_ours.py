"""Our side: fused attention, read and changed through `gf.watch` and `gf.change`."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

import glassformer as gf
from glassformer.tracing.variants import run_variants
from why_models import Case, load_fused
from why_quantities import (
    DETECTOR,
    HEAD_DIFFERENCES,
    HEAD_SHARES,
    HEADS,
    HEADS_BEFORE,
    INDUCTION,
    LENS,
    LENS_BETWEEN,
    LOGITS,
    PART_SHARES,
    PATTERNS,
    REMAINDER,
    Quantities,
    logit_difference,
    patch_cells,
    score_stripe,
)


class Glassformer:
    """A model of transformers with sdpa attention, or our own model of the same folder."""

    def __init__(self, case: Case) -> None:
        self.is_loaded = case.is_loaded
        self.model: Any = gf.load(case.folder) if case.is_loaded else load_fused(case.folder)
        self.model.eval()
        self.watched: Any = None  # the run of a large case whose heads are ablated

    @torch.no_grad()
    def run(self, tokens: Tensor) -> Tensor:
        if self.is_loaded:
            return self.model(tokens)
        return self.model(input_ids=tokens, use_cache=False).logits

    def watch(self, tokens: Tensor) -> tuple[Tensor, Any]:
        with gf.watch(self.model, residual=True) as trace:
            logits = self.run(tokens)
        return logits, trace

    def read(self, case: Case) -> Quantities:
        logits, trace = self.watch(case.tokens)
        stream = trace.residual()
        states = dict(stream.states())
        attention = [part for part in stream.parts if part.kind == "self"]
        self.n_heads = trace[attention[0].site].n_heads
        ends = {part.layer: part.name for part in stream.parts}  # the last part of each layer
        at_ends = [states[name] for name in (stream.borders[0], *ends.values())]
        between = [states[part.name] for part in attention]
        shares, remainders = _part_shares(trace, case)
        found = {
            LOGITS: logits,
            LENS: torch.stack([stream.readout(x) for x in at_ends]),
            PATTERNS: _patterns(trace),
            HEADS: torch.stack([_head_outputs(trace, part) for part in attention]),
            HEADS_BEFORE: torch.stack([_head_outputs(trace, _bare(part)) for part in attention]),
            PART_SHARES: shares,
            REMAINDER: remainders,
            HEAD_SHARES: _head_shares(trace, case, self.n_heads),
            HEAD_DIFFERENCES: _head_shares(trace, case, self.n_heads, is_difference=True),
        }
        if not any(part.is_joined for part in stream.parts):
            found[LENS_BETWEEN] = torch.stack([stream.readout(x) for x in between])
        _, repeated = self.watch(case.repeated)
        patterns = _patterns(repeated)
        found[INDUCTION] = score_stripe(patterns)
        found[DETECTOR] = _share_after_copies(patterns[:, 0], case.repeated[0])
        return found

    def ablate(self, case: Case, layer: int, head: int, how: str) -> Tensor:
        with gf.change(self.model, gf.Ablate(f"decoder.{layer}.self", head=head, how=how)):
            return self.run(case.tokens)

    def ablate_side_by_side(self, case: Case, layer: int, how: str) -> Tensor:
        if self.watched is None:
            self.watched = self.watch(case.tokens)[1]
        place = f"decoder.{layer}.self"
        variants = [gf.Ablate(place, head=head, how=how) for head in range(self.n_heads)]
        ends = run_variants(self.watched, variants)
        return self.watched.residual().readout(ends[:, -1:])[:, 0]

    def patch(self, case: Case) -> Tensor:
        if case.is_large:
            sweep = gf.sweep(
                self.model,
                self.watch(case.clean)[1],
                self.watch(case.corrupted)[1],
                over="heads × positions",
                metric=case.answers,
                batch=32,
            )
            cells = sweep.values.unflatten(0, (-1, self.n_heads)).transpose(1, 2)  # N L H
            return cells.flatten().float()
        _, clean = self.watch(case.clean)
        found = []
        for layer, position, head in patch_cells(case, self.n_heads):
            site = f"decoder.{layer}.self"
            change = gf.Patch(site, clean, head=head, positions=[position])
            with gf.change(self.model, change):
                found.append(logit_difference(case, self.run(case.corrupted)))
        return torch.stack(found)


def _patterns(trace: Any) -> Tensor:
    """(N, B, H, L, L), each derived from the operands; without a sink, which is the first key."""
    return torch.stack([_weights(site)[..., -site.shape[2] :] for site in trace])


def _weights(site: Any) -> Tensor:
    return torch.stack([site.weights(sequence=b) for b in range(site.shape[0])])


def _head_outputs(trace: Any, part: Any) -> Tensor:
    """What each head adds to the stream, (B, L, H, C): weights times v, times its slice of W_O."""
    site = trace[part.site]
    H = site.n_heads
    weights = _weights(site).double()
    v = site.v.double().repeat_interleave(H // site.v.shape[1], dim=1)
    inputs = (weights @ v).transpose(1, 2).flatten(2)  # B L HE
    slices, _ = part.writing.split(inputs, H)
    return slices.permute(1, 2, 0, 3).float()


def _bare(part: Any) -> Any:
    """The part without the norm that lies between its matrix and the stream, in some families."""
    return replace(part, writing=replace(part.writing, then=()))


def _part_shares(trace: Any, case: Case) -> tuple[Tensor, Tensor]:
    """The shares of each row, (rows, 1 + 2 N), and what they miss the logit by."""
    stream = trace.residual()
    layers = range(stream.parts[-1].layer + 1)
    names = [f"{stream.name}.{layer}.{kind}" for layer in layers for kind in ("self", "mlp")]
    rows, remainders = [], []
    for row in case.rows:
        found = gf.attribute(trace, int(case.targets[row]), position=row)
        values = {share.name: share.value for share in found.shares}
        remainders.append(found.remainder)
        rows.append(torch.tensor([values[name] for name in (stream.borders[0], *names)]))
    return torch.stack(rows), torch.tensor(remainders)


def _head_shares(trace: Any, case: Case, H: int, *, is_difference: bool = False) -> Tensor:
    rows = []
    for row in case.rows:
        against = int(case.others[row]) if is_difference else None
        found = gf.attribute(
            trace, int(case.targets[row]), against=against, by="head", position=row
        )
        values = [share.value for share in found.shares if share.head is not None]
        rows.append(torch.tensor(values).view(-1, H))
    return torch.stack(rows)


def _share_after_copies(patterns: Tensor, tokens: Tensor) -> Tensor:
    """The share of attention on tokens that follow an earlier copy of the query; (N, H)."""
    L = len(tokens)
    is_target = torch.zeros(L, L, dtype=torch.bool)
    for i in range(L):
        for j in range(1, i + 1):
            is_target[i, j] = j - 1 != i and tokens[j - 1] == tokens[i]
    return (patterns * is_target).sum((-2, -1)) / patterns.sum((-2, -1))
