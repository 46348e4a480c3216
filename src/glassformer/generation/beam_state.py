"""Beam search on a GPU without the host: scores, the rows that beams continue, what has ended.

A step reads one token per beam (cuda_step.py) and then selects (beam_kernels.py). Keys and values
stay where they are: `origins` says for each beam which row has each slot of its past. The host
reads the history of the search when it is over, and puts the texts together.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.generation import program_shapes as shapes
from glassformer.generation.cuda_step import CudaStep

MOST_BEAMS = 16  # more are selected by the host
_BLOCK = 4096  # tokens of the vocabulary that one program ranks


class FoundText(NamedTuple):
    """A text that a search has found; the stop token counts in `length` and is not in `tokens`."""

    log_probability: float
    length: int
    tokens: tuple[int, ...]
    is_finished: bool


class BeamState:
    """The beams of a batch, and the history of their search by the column of the text."""

    def __init__(self, step: CudaStep, *, beams: int, stops: Sequence[int]) -> None:
        self.step, self.beams = step, beams
        B, V, device = step.batch, step.config.vocab_size, step.x.device
        P = B // beams
        self.n_parts = shapes.count_blocks(V, _BLOCK)
        self.most = beams * (1 + len(stops))  # those that stop do not displace the others
        self.n_best = min(self.most, V)
        self.stop_tokens = tuple(stops)
        self.stops = torch.tensor([*stops] or [-1], dtype=torch.int32, device=device)
        self.scores = torch.zeros(P, beams, dtype=torch.float64, device=device)
        self.n_ended = torch.zeros(P, dtype=torch.int32, device=device)
        self.rows = torch.zeros(B, dtype=torch.int32, device=device)
        self.origins = torch.zeros(B, step.capacity, dtype=torch.int32, device=device)
        parts = (B, self.n_parts)
        self.tops = torch.zeros(*parts, self.n_best, dtype=torch.float32, device=device)
        self.choices = torch.zeros(*parts, self.n_best, dtype=torch.int32, device=device)
        self.sums = torch.zeros(*parts, 2, dtype=torch.float32, device=device)
        shape = (step.capacity, P, beams)
        self.written = torch.zeros(shape, dtype=torch.int32, device=device)
        self.parents = torch.zeros(shape, dtype=torch.int32, device=device)
        self.ended = torch.zeros(shape, dtype=torch.float64, device=device)
        self.ended_parents = torch.zeros(shape, dtype=torch.int32, device=device)
        self.live = torch.zeros(shape[:2], dtype=torch.int32, device=device)

    @property
    def moving(self) -> tuple[Tensor, ...]:
        """What a step changes and the next one reads."""
        return self.scores, self.n_ended, self.origins

    def begin(self) -> None:
        """One live beam for each prompt, and copies that cannot win."""
        self.scores.fill_(-torch.inf)
        self.scores[:, 0] = 0.0
        self.n_ended.zero_()
        own = torch.arange(len(self.rows), dtype=torch.int32, device=self.rows.device)
        self.origins.copy_(own[:, None].expand_as(self.origins))

    def take_prompts(self, other: "BeamState", prompts: Int[Tensor, " P"], columns: range) -> None:
        """Go on with these prompts of another search, whose history is in these columns."""
        for name in ("scores", "n_ended"):
            getattr(self, name).copy_(getattr(other, name)[prompts])
        part = slice(columns.start, columns.stop)
        for name in ("written", "parents", "ended", "ended_parents"):
            getattr(self, name)[part] = getattr(other, name)[part, prompts]
        beam = torch.arange(self.beams, device=prompts.device)
        rows = (prompts[:, None] * self.beams + beam).flatten()
        moved = torch.arange(len(rows), device=rows.device) - rows  # copies stay side by side
        self.origins.copy_(other.origins[rows] + moved[:, None])
        self.step.take_rows(other.step, rows, columns.stop)

    def end(self, first: int) -> None:
        """End the search of the prompts from this one on; they have found nothing."""
        self.scores[first:] = -torch.inf
        self.ended[:, first:] = -torch.inf

    def advance(self) -> None:
        """Read the tokens of all beams and select the next; nothing waits for the host."""
        step = self.step
        step.origins = self.origins if self.beams > 1 else None
        try:
            logits = step()
        finally:
            step.origins = None
        self.select(logits)

    def select(self, logits: Float[Tensor, "B V"]) -> None:
        """The best continuations become the tokens to be read next."""
        from glassformer.generation.beam_kernels import follow_kernel, rank_kernel, select_kernel

        step, beams = self.step, self.beams
        P, V = len(self.scores), logits.shape[1]
        step.launch(rank_kernel, self.n_parts, step.batch)(
            logits,
            step.excluded,
            step.forbidden,
            self.tops,
            self.choices,
            self.sums,
            V,
            logits.stride(0),
            BEST=self.n_best,
            COPIES=step.copies,
            FORBIDS=step.is_restricted,
            BLOCK=_BLOCK,
            num_warps=8,
        )
        size = shapes.power_above(beams * self.n_parts * self.n_best)
        slots = shapes.power_above(beams)
        step.launch(select_kernel, P)(
            self.tops,
            self.choices,
            self.sums,
            self.stops,
            self.scores,
            self.n_ended,
            step.tokens,
            step.lengths,
            self.rows,
            self.written,
            self.parents,
            self.ended,
            self.ended_parents,
            self.live,
            len(self.stops),
            P,
            BEAMS=beams,
            MOST=min(self.most, beams * self.n_parts * self.n_best),
            BEST=self.n_best,
            PARTS=self.n_parts,
            SLOTS=slots,
            STOPS=shapes.power_above(len(self.stops)),
            SIZE=size,
            num_warps=1 if size <= 256 else 4,
        )
        if beams > 1:
            step.launch(follow_kernel, P)(
                self.origins,
                self.rows,
                step.lengths,
                step.capacity,
                BEAMS=beams,
                SLOTS=slots,
                BLOCK=64,
                num_warps=2,
            )

    def read_texts(self, columns: range) -> list[list[FoundText]]:
        """The texts of each prompt after the steps that wrote these columns."""
        part = slice(columns.start, columns.stop)
        written, parents, ended, ended_parents = (
            each[part].cpu()
            for each in (self.written, self.parents, self.ended, self.ended_parents)
        )
        scores = self.scores.cpu()
        T = len(columns)
        # One entry for each text: its prompt, how many tokens it has, its last beam, its score.
        n, prompts, slot = (ended > -torch.inf).nonzero(as_tuple=True)
        others, beam = (scores > -torch.inf).nonzero(as_tuple=True)
        prompt = torch.cat((prompts, others))
        lengths = torch.cat((n, torch.full_like(others, T)))
        beams = torch.cat((ended_parents[n, prompts, slot].long(), beam))
        logs = torch.cat((ended[n, prompts, slot], scores[others, beam])).tolist()
        texts = _follow_back(written, parents, prompt, lengths, beams).tolist()
        found: list[list[FoundText]] = [[] for _ in range(len(scores))]
        for i, (p, length) in enumerate(zip(prompt.tolist(), lengths.tolist(), strict=True)):
            is_finished = i < len(n)
            tokens = tuple(texts[i][:length])
            found[p].append(FoundText(logs[i], length + is_finished, tokens, is_finished))
        return found


def _follow_back(
    written: Int[Tensor, "T P W"],
    parents: Int[Tensor, "T P W"],
    prompt: Int[Tensor, " n"],
    lengths: Int[Tensor, " n"],
    beams: Int[Tensor, " n"],
) -> Int[Tensor, "n T"]:
    """The tokens of texts of these lengths, from their last beams back to the beginning."""
    texts = torch.zeros(len(prompt), len(written), dtype=written.dtype)
    for column in reversed(range(len(written))):
        there = lengths > column
        texts[:, column] = torch.where(there, written[column, prompt, beams], 0)
        beams = torch.where(there, parents[column, prompt, beams].long(), beams)
    return texts
