"""What is made of a mask is made once for all layers, and again when the mask changes."""

import weakref
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import glassformer as gf
from closeness import assert_close
from glassformer.functional import reference
from glassformer.functional.backends import flex, sdpa
from glassformer.functional.cells import Extent
from glassformer.functional.masks import derive

EXTENT = Extent(2, 2, 9, 9)


class Counting(TorchDispatchMode):
    """Counts the comparisons that a formula of a mask makes."""

    n_comparisons = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.n_comparisons += func.overloadpacket in (torch.ops.aten.le, torch.ops.aten.lt)
        return func(*args, **(kwargs or {}))


def operands() -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = torch.randn(3, 2, 2, 9, 16).unbind(0)
    return q, k, v


def masks() -> list[gf.Mask]:
    """Each holds one tensor, which `change` changes."""
    return [
        gf.Padding(torch.tensor([9, 4])),
        gf.Causal() & gf.Padding(torch.tensor([9, 4])),
        gf.Causal() & ~gf.Prefix(torch.tensor([2, 3])),
        gf.Causal() & (gf.Window(1) | gf.Documents(torch.arange(9) // 3)),
        gf.Causal() & gf.Explicit(torch.ones(9, 9, dtype=torch.bool).tril(-1)),
    ]


def change(mask: gf.Mask) -> None:
    parts = [mask]
    for part in parts:
        parts += [inner for inner in vars(part).values() if isinstance(inner, gf.Mask)]
        for value in vars(part).values():
            if isinstance(value, Tensor):
                value.copy_(value.flip(-1).roll(1, 0))


@pytest.mark.parametrize("case", range(5))
def test_layers_share_it_until_the_mask_changes(monkeypatch: pytest.MonkeyPatch, case: int) -> None:
    mask, made = masks()[case], []
    make = sdpa._dense_mask
    monkeypatch.setattr(sdpa, "_dense_mask", lambda *given: made.append(1) or make(*given))
    for n_times in (1, 2):
        for _ in range(3):
            q, k, v = operands()
            got = gf.attention(q, k, v, mask=mask, backend="sdpa")
            assert_close(got, reference.attention(q, k, v, mask=mask), 1e-5)
        assert len(made) == n_times
        change(mask)


@pytest.mark.parametrize("case", range(5))
def test_so_are_lists_of_blocks(case: int) -> None:
    mask, here = masks()[case], torch.device("cpu")
    first = flex.block_mask(mask, EXTENT, here)
    assert flex.block_mask(mask, EXTENT, here) is first
    change(mask)
    assert flex.block_mask(mask, EXTENT, here) is not first


def test_sizes_have_their_own() -> None:
    mask = gf.Causal() & gf.Padding(torch.tensor([4, 3]))
    for L, S in ((9, 9), (2, 9), (9, 9)):
        q, k, v = operands()
        got = gf.attention(q[:, :, :L], k[:, :, :S], v[:, :, :S], mask=mask, backend="sdpa")
        assert_close(
            got, reference.attention(q[:, :, :L], k[:, :, :S], v[:, :, :S], mask=mask), 1e-5
        )


def test_a_mask_first_used_in_inference_mode_serves_training() -> None:
    mask = gf.Causal() & gf.Padding(torch.tensor([9, 4]))
    q, k, v = operands()
    with torch.inference_mode():
        gf.attention(q, k, v, mask=mask, backend="sdpa")
    q.requires_grad_()
    gf.attention(q, k, v, mask=mask, backend="sdpa").sum().backward()
    assert q.grad is not None and q.grad.isfinite().all()


def test_tensors_without_a_version_are_looked_at_each_time() -> None:
    with torch.inference_mode():
        mask = gf.Causal() & gf.Padding(torch.tensor([9, 4]))
        q, k, v = operands()
        gf.attention(q, k, v, mask=mask, backend="sdpa")
        change(mask)
        got = gf.attention(q, k, v, mask=mask, backend="sdpa")
        assert_close(got, reference.attention(q, k, v, mask=mask), 1e-5)


def test_it_goes_with_the_mask() -> None:
    for case in range(5):
        mask = masks()[case]
        gf.attention(*operands(), mask=mask, backend="sdpa")
        flex.block_mask(mask, EXTENT, torch.device("cpu"))
        alive = weakref.ref(mask)
        del mask
        assert alive() is None


def test_large_dense_masks_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = gf.Padding(torch.tensor([9, 4]))
    monkeypatch.setattr(sdpa, "_MOST_KEPT", 100)
    gf.attention(*operands(), mask=mask, backend="sdpa")
    made = derive(mask, "dense", EXTENT, torch.device("cpu"), lambda: "made now")
    assert made == "made now"


def test_a_mask_of_somebody_else_with_other_values_is_not_kept() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Listed(gf.Padding):
        more: object = None

    mask = Listed(torch.tensor([1]), more=[torch.ones(1)])
    results = [derive(mask, "any", EXTENT, torch.device("cpu"), object) for _ in range(2)]
    assert results[0] is not results[1]


def test_fitting_masks_stay_the_same_objects() -> None:
    for mask in masks():
        assert mask.fit_to(EXTENT, torch.device("cpu")) is mask
    fitted = (gf.Causal() & gf.Padding([9, 4])).fit_to(EXTENT, torch.device("cpu"))
    assert torch.equal(fitted.b.lengths, torch.tensor([9, 4]))  # type: ignore[attr-defined]


def test_who_observes_operations_sees_all_of_them_each_time() -> None:
    """A mode may count operations, or put other tensors in their place."""
    mask = gf.Causal() & gf.Padding(torch.tensor([9, 4]))
    gf.attention(*operands(), mask=mask, backend="sdpa")
    counts = []
    for _ in range(2):
        with Counting() as counting:
            gf.attention(*operands(), mask=mask, backend="sdpa")
        counts.append(counting.n_comparisons)
    assert counts[0] == counts[1] > 0
