"""`lse` overheard from PyTorch: what comes out stays the same, and lse is what we mean."""

import sys

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.functional.statistics.kernel_lse import KernelLse

OVERHEARD = sys.modules["glassformer.functional.statistics.kernel_lse"]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(autouse=True)
def _small_calls_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OVERHEARD, "LEAST", 1)
    monkeypatch.setattr(OVERHEARD, "_trusted", {})


def operands(device: str, dtype: torch.dtype, H: int = 4, K: int = 4, S: int = 131) -> list[Tensor]:
    shapes = ((2, H, 131, 16), (2, K, S, 16), (2, K, S, 16))
    return [torch.randn(shape).to(device, dtype) for shape in shapes]


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("device", DEVICES)
def test_attention_is_the_same_to_the_bit_and_lse_is_right(
    device: str, dtype: torch.dtype, is_causal: bool
) -> None:
    q, k, v = operands(device, dtype)
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, scale=0.3)
    with KernelLse() as heard:
        out = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, scale=0.3)
    assert_same(out, expected)
    mask = gf.Causal() if is_causal else None
    right = gf.attention_lse(q.double(), k.double(), mask=mask, scale=0.3)
    if device == "cpu" and dtype == torch.bfloat16 and heard.lse is None:
        return  # not exact enough there
    assert heard.lse is not None and heard.lse.dtype == torch.float32
    assert_close(heard.lse.double(), right, 1e-4, "lse")


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_stay_the_same(device: str) -> None:
    q, k, v = (x.requires_grad_() for x in operands(device, torch.float32))
    F.scaled_dot_product_attention(q, k, v).sum().backward()
    expected = [x.grad for x in (q, k, v)]
    for x in (q, k, v):
        x.grad = None
    with KernelLse() as heard:
        F.scaled_dot_product_attention(q, k, v).sum().backward()
    assert heard.lse is not None
    for x, right in zip((q, k, v), expected, strict=True):
        assert x.grad is not None and right is not None
        assert_same(x.grad, right)


@pytest.mark.parametrize("device", DEVICES)
def test_grouped_heads_stay_the_same(device: str) -> None:
    q, k, v = operands(device, torch.bfloat16, K=2)
    expected = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    with KernelLse() as heard:
        out = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    assert_same(out, expected)
    if heard.lse is not None:
        assert_close(
            heard.lse.double(), gf.attention_lse(q.double(), k.double()), 1e-4, "grouped lse"
        )


def test_masks_dropout_and_odd_widths_are_left_alone() -> None:
    q, k, v = operands("cpu", torch.float32)
    hidden = torch.ones(131, 131, dtype=torch.bool).tril()
    with KernelLse() as heard:
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=hidden)
        assert heard.lse is None
        F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
        assert heard.lse is None
        F.scaled_dot_product_attention(q[..., :7], k[..., :7], v[..., :7])
        assert heard.lse is None
    assert_same(out, F.scaled_dot_product_attention(q, k, v, attn_mask=hidden))


def test_small_calls_are_not_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OVERHEARD, "LEAST", 131 * 131 + 1)
    with KernelLse() as heard:
        F.scaled_dot_product_attention(*operands("cpu", torch.float32))
    assert heard.lse is None


def test_a_kernel_whose_lse_means_something_else_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attend = OVERHEARD._Call.attend

    def in_other_units(call: object) -> tuple[Tensor, Tensor]:
        out, lse = attend(call)
        return out, lse / 0.6931

    monkeypatch.setattr(OVERHEARD._Call, "attend", in_other_units)
    with KernelLse() as heard:
        F.scaled_dot_product_attention(*operands("cpu", torch.float32))
    assert heard.lse is None
