"""Whether the kernel in C is faster than PyTorch's for a call, as measured on this processor.

It depends on how the mask reaches PyTorch's kernel, the width of a head, the length of the text and
whether gradients follow. Each combination is measured once, on a text of that length.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.functional.autocast import without_autocast
from glassformer.functional.backends import native, sdpa
from glassformer.functional.biases import ALiBi
from glassformer.functional.cells import Extent
from glassformer.functional.checks import Scoring
from glassformer.functional.masks import Causal, Window
from glassformer.functional.measured_choice import measure_once

GAIN = 0.95  # of the time of PyTorch's kernel: what the kernel in C must not exceed
ENOUGH = 1 << 24  # multiplications of a whole product: below this, calling it may take longest
FEWEST = native.GROUP // 2  # queries: fewer leave most of its vectors empty
SHORTEST, LONGEST = 64, 1024  # of the texts that are timed


class Case(NamedTuple):
    """What decides which kernel is faster."""

    form: str  # none, causal, mask or bias: what PyTorch's kernel is given
    width: int
    length: int
    learns: bool

    def __str__(self) -> str:
        passes = "forward and backward" if self.learns else "forward"
        return f"attention, {self.form}, {self.length} tokens, heads of {self.width}, {passes}"


def find_case(q: Tensor, k: Tensor, v: Tensor, scoring: Scoring) -> Case | None:
    """The case of a call that both kernels compute; None if there is too little work to ask."""
    form = sdpa.form(q, scoring)
    L, S = scoring.extent[2:]
    if form not in ("none", "is_causal", "dense") or L < FEWEST:
        return None
    has_bias = scoring.bias is not None  # PyTorch's kernel is given one as a matrix
    if not has_bias and q.numel() * S < (ENOUGH if form != "dense" else ENOUGH // 2):
        return None
    if form == "dense":
        form = "bias" if has_bias else "mask"
    learns = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    length = 1 << (min(max(L, S, SHORTEST), LONGEST) - 1).bit_length()
    return Case(form.removeprefix("is_"), q.shape[-1], length, learns)


def measure(case: Case) -> float:
    """The time of the kernel in C, as a share of that of PyTorch's kernel."""
    question = f"{case}; {2 * ENOUGH} multiplications; {native.version()}"
    return measure_once(question, lambda: _prepare(case)).ratio


def _prepare(case: Case) -> tuple[Callable[[], object], Callable[[], object]]:
    threads, L = torch.get_num_threads(), case.length
    heads = 2 * ENOUGH // (L * L * case.width)  # as much work as calls have that ask
    H = max(1, heads // threads) * threads
    with torch.inference_mode(False):
        # Not random: the user's random numbers stay what they are.
        wave = torch.arange(3.0 * H * L * case.width).sin().view(3, 1, H, L, case.width)
        q, k, v = (x.clone().requires_grad_(case.learns) for x in wave)
    mask = {"none": None, "mask": Causal() & Window(L // 2)}.get(case.form, Causal())
    bias = ALiBi.of_heads(H) if case.form == "bias" else None
    scoring = Scoring(Extent(1, H, L, L), mask, bias, case.width**-0.5, None)

    def by(backend: object) -> Callable[[], object]:
        def run() -> None:
            with torch.inference_mode(False), torch.set_grad_enabled(case.learns):
                with without_autocast(q):
                    out = backend.attend(q, k, v, scoring)  # type: ignore[attr-defined]
                if case.learns:
                    torch.autograd.grad(out, (q, k, v), torch.ones_like(out))

        return run

    return by(native), by(sdpa)
