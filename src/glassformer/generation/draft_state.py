"""Speculative decoding on a GPU without the host: the text, the guesses, and which of them held.

A pass reads the last token of the text and the guesses after it as rows of one step (cuda_step.py),
or the last token alone; then accept_kernel (draft_kernels.py) appends what the model chose. The
host reads from the log what passes wrote, and decides which kind comes next.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from glassformer.generation import program_shapes as shapes
from glassformer.generation.cuda_prompts import read_prompts
from glassformer.generation.cuda_state import FEW
from glassformer.generation.cuda_step import CudaStep
from glassformer.models.decoder_weights import DecoderWeights

WIDE = FEW  # rows of a pass with guesses
N_GUESSES = WIDE - 1
_BLOCK = 1024  # tokens of the text that are compared at once


class DraftState:
    """One text that is written by passes with guesses.

    `step` reads its last token alone; guesses are looked up in the text, or come from a smaller
    model with the weights `draft`.
    """

    def __init__(self, step: CudaStep, draft: DecoderWeights | None) -> None:
        self.step, self.draft_weights = step, draft
        self.wide = CudaStep(
            step.weights, batch=WIDE, capacity=step.capacity, copies=WIDE, ahead_of=step
        )
        assert self.wide.is_few
        device = step.x.device
        self.text = torch.zeros(step.capacity, dtype=torch.int32, device=device)
        self.most = torch.zeros(1, dtype=torch.int32, device=device)  # tokens of the text
        self.log = torch.zeros(step.capacity, WIDE + 2, dtype=torch.int32, device=device)
        self.on_host = torch.zeros(
            self.log.shape, dtype=torch.int32, pin_memory=device.type == "cuda"
        )
        self.n_logged = torch.zeros(1, dtype=torch.int32, device=device)
        self.draft = None
        if draft is not None:
            self.draft = CudaStep(draft, batch=1, capacity=step.capacity)
            self.drafted = torch.zeros(step.capacity, 1, dtype=torch.int32, device=device)
            self.ahead = torch.arange(1, WIDE, device=device)
        self.passes = {n_rows: AheadPass(self, n_rows) for n_rows in (1, WIDE)}

    def begin(
        self,
        prompt: Int[Tensor, "1 L"],
        most: int,
        never: Sequence[int],
        forbidden: Bool[Tensor, "1 V"] | None,
    ) -> None:
        """A text of up to `most` tokens begins, all of whose prompt but the last has been read."""
        L = prompt.shape[1]
        self.wide.exclude(never, forbidden)
        self.wide.tokens.zero_()
        self.wide.tokens[0] = prompt[0, -1]
        self.wide.lengths.copy_(torch.arange(L - 1, L - 1 + WIDE))
        self.text[:L] = prompt[0]
        self.most.fill_(most)
        self.n_logged.zero_()
        if self.draft is not None:
            self.draft.exclude(never, forbidden)
            if L > 1:
                read_prompts(self.draft, prompt[:, :-1], None)

    def guess(self, n_steps: int) -> None:
        """Have the draft write `n_steps` tokens; the first ones are the guesses.

        It reads one token more than it need guess, and so has read all guesses if all hold.
        """
        draft, step = self.draft, self.step
        assert draft is not None
        draft.tokens.copy_(step.tokens)
        draft.lengths.copy_(step.lengths)
        for _ in range(n_steps):
            draft()
            draft.choose(self.drafted)
        places = step.lengths.long() + self.ahead
        self.wide.tokens[1:] = self.drafted[:, 0].index_select(0, places).clamp(min=0)


class AheadPass:
    """A pass of a text, with `n_rows` of its tokens; captured as one graph."""

    def __init__(self, state: DraftState, n_rows: int) -> None:
        self.state, self.n_rows = state, n_rows

    @property
    def moving(self) -> tuple[Tensor, ...]:
        """What a pass changes and the next one reads."""
        wide = self.state.wide
        return wide.tokens, wide.lengths, self.state.n_logged

    def advance(self) -> None:
        """Read the tokens, append what the model chose, and guess again."""
        state = self.state
        if state.draft is not None:
            state.guess(self.n_rows)
        step = state.step if self.n_rows == 1 else state.wide
        step()
        self.accept(step)

    def accept(self, step: CudaStep) -> None:
        """Append to the text what the model chose after each row of this step."""
        from glassformer.generation.draft_kernels import accept_kernel

        state = self.state
        step.launch(accept_kernel, 1)(
            step.best,
            step.best_index,
            state.wide.tokens,
            state.wide.lengths,
            state.step.tokens,
            state.step.lengths,
            state.text,
            state.most,
            state.log,
            state.n_logged,
            self.n_rows,
            step.n_blocks,
            LOOKS_UP=state.draft is None,
            WIDE=WIDE,
            PARTS=shapes.power_above(step.n_blocks),
            BLOCK=_BLOCK,
            num_warps=8,
        )
