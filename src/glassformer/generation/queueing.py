"""Continuous batching: of many prompts some are written at a time, and one that ends makes room.

    row 0   ──────────────┤ next prompt ──────────┤ next …
    row 1   ──────┤ next prompt ────────────────────────┤ …
    column  0 1 2 3 …                              all rows read the same column in a step

Rows have their columns in common, so a prompt that enters lies before the present column and is
padded on the left as far as that goes; padding is neither read nor counted in positions. (Yu et
al. 2022 call it iteration-level scheduling.) On a CPU, where nobody watches; `captured_queue` does
it on a GPU.
"""

from collections import deque
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.generation import sampling, sessions
from glassformer.generation.choice_rule import Rule
from glassformer.generation.direct import DirectSession
from glassformer.generation.native_step import native_refusal
from glassformer.generation.prompts import GenerativeModel
from glassformer.models import Decoder

_MOST_SLOTS = 64  # rows: with more, a token costs hardly less
_MOST_SLOTS_ON_GPU = 1024
_MOST_MEMORY = 1 << 30  # bytes of keys and values
_STRETCH = 8  # tokens per call into C

Choose = Callable[[Float[Tensor, "B V"]], Int[Tensor, " B"]]
OnToken = Callable[[int, int], bool]  # of a prompt and a token: whether the text is over


def count_slots(
    model: GenerativeModel, prompts: Sequence[Sequence[int]], max_new_tokens: int
) -> int:
    """How many prompts are written at a time; all of them where they do not take turns."""
    if not isinstance(model, Decoder) or len(prompts) == 1:
        return len(prompts)
    config, weight = model.config, model.embedding.weight
    most, memory = _MOST_SLOTS, _MOST_MEMORY
    if weight.is_cuda:
        most, memory = _MOST_SLOTS_ON_GPU, torch.cuda.mem_get_info(weight.device)[0] // 2
    columns = max(map(len, prompts)) + 2 * max_new_tokens
    row = config.n_layers * columns * 2 * config.n_kv_heads * config.head_dim * 4
    slots = max(1, min(most, memory // row))
    if slots >= len(prompts):
        return len(prompts)
    direct = sessions.choose_direct(model, max_new_tokens)  # which looks through the model
    if direct is None or (direct is DirectSession and native_refusal(model)):
        return len(prompts)
    return slots


class QueuedSession(DirectSession):
    """Decoding in which rows that have ended are given to other prompts."""

    def _set_up(self, batch: int, capacity: int, missing: Tensor | None) -> None:
        super()._set_up(
            batch, capacity, torch.zeros(batch, dtype=torch.long) if missing is None else missing
        )

    def admit(self, rows: Sequence[int], prompts: Sequence[Sequence[int]]) -> Float[Tensor, "n V"]:
        """Read these prompts, none of them longer than all that was read; their logits."""
        other = DirectSession(self.model, prompts, source=None, max_new_tokens=1)
        logits, missing = other.next_logits(), self.step.missing
        assert missing is not None
        for i, (row, prompt) in enumerate(zip(rows, prompts, strict=True)):
            start, n = self.length - len(prompt), other.length
            self.step.memory[:, row, start : self.length] = other.step.memory[
                :, i, n - len(prompt) : n
            ]
            missing[row] = start
        return logits

    def make_room(self, n: int) -> None:
        """Move everything to the left if there are not `n` columns left."""
        memory, missing = self.step.memory, self.step.missing
        assert missing is not None
        if self.length + n <= memory.shape[2]:
            return
        shift = int(missing.min())
        for layer in memory:
            layer[:, : self.length - shift] = layer[:, shift : self.length].clone()
        missing -= shift
        self.length -= shift


def write_queued(
    model: Decoder,
    prompts: Sequence[Sequence[int]],
    *,
    slots: int,
    max_new_tokens: int,
    rule: Rule,
    choose: Choose | None,
    on_token: OnToken,
) -> None:
    """Continue all prompts, `slots` at a time.

    `on_token` is called with each token as it is chosen, stop tokens included. Without `choose`,
    decoding is greedy.
    """
    # The longest come first: what enters later is no longer than the columns before it.
    waiting = deque(sorted(range(len(prompts)), key=lambda i: len(prompts[i]), reverse=True))
    texts = [waiting.popleft() for _ in range(slots)]  # of each row
    left = [max_new_tokens] * slots  # tokens that a row may still write
    session = QueuedSession(
        model, [prompts[i] for i in texts], source=None, max_new_tokens=2 * max_new_tokens
    )

    def add(row: int, token: int) -> bool:
        left[row] -= 1
        return on_token(texts[row], token) or left[row] == 0

    while texts:
        n = min(_STRETCH, *left) if choose is None else 1
        session.make_room(n)
        if choose is None:
            steps = session.write(n, rule)
        else:
            tokens = choose(session.next_logits())
            session.append(tokens)
            steps = [tokens.tolist()]
        over: set[int] = set()
        for step in steps:
            over |= {row for row, token in enumerate(step) if row not in over and add(row, token)}
        while over and waiting:
            rows = sorted(over)[: len(waiting)]
            for row in rows:
                texts[row], left[row] = waiting.popleft(), max_new_tokens
            logits = session.admit(rows, [prompts[texts[row]] for row in rows])
            first = _choose_likeliest(logits, rule) if choose is None else choose(logits)
            session.fresh[rows, 0] = first
            over -= {
                row for row, token in zip(rows, first.tolist(), strict=True) if not add(row, token)
            }
        if over:
            going = [row for row in range(len(texts)) if row not in over]
            texts, left = ([each[row] for row in going] for each in (texts, left))
            if texts:
                session.keep(torch.tensor(going))


def _choose_likeliest(logits: Float[Tensor, "n V"], rule: Rule) -> Int[Tensor, " n"]:
    return sampling.choose(sampling.exclude_tokens(logits, rule.never, None), sampling.GREEDY)
