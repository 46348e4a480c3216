"""Calls of the kernel in C, and their comparison with the definition."""

import torch
from torch import Tensor

import glassformer as gf
from closeness import assert_close

CAUSAL = gf.Causal()


def make_operands(
    L: int, D: int = 64, *, B: int = 2, H: int = 3, K: int | None = None, S: int | None = None
) -> tuple[Tensor, ...]:
    """As a model has them: views of one projection, heads side by side in memory."""
    torch.manual_seed(L + D)
    S, counts = S or L, [H, K or H, K or H]
    heads = torch.randn(B, max(L, S), sum(counts), D).split(counts, dim=2)
    cut = zip(heads, (L, S, S), strict=True)
    return tuple(x[:, :n].transpose(1, 2).detach().requires_grad_() for x, n in cut)


def run(
    operands: tuple[Tensor, ...], back: Tensor, backend: str | None = "native", **options
) -> list[Tensor]:
    """The output, and the gradients of q, k and v."""
    out = gf.attention(*operands, **{"mask": CAUSAL, **options}, backend=backend)
    return [out.detach(), *torch.autograd.grad(out, operands, back)]


def check_against_definition(operands: tuple[Tensor, ...], **options) -> None:
    """At most twice the error of the definition in float32, thrice for gradients (decision 5)."""
    back = torch.randn(operands[0].shape)
    got = run(operands, back, **options)
    wide = tuple(x.detach().double().requires_grad_() for x in operands)
    exact = run(wide, back.double(), "reference", **options)
    plain = run(operands, back, "reference", **options)
    for i, name in enumerate(("out", "dq", "dk", "dv")):
        largest = exact[i].abs().max().item()
        error = (plain[i] - exact[i]).abs().max().item()
        limit = (3 if i else 2) * error + 2 * torch.finfo(torch.float32).eps * largest
        assert_close(got[i].double(), exact[i], max(limit, 1e-5 * max(largest, 1.0)), name)
