"""Packed texts: the same as masked documents, and as each text alone."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.errors import BackendError, ShapeError
from glassformer.functional import reference
from glassformer.functional.masks import PackedRow

H, K, D, E = 6, 3, 11, 13
lengths = st.lists(st.integers(1, 9), min_size=1, max_size=5)


def operands(n_queries: int, n_keys: int) -> tuple[Tensor, Tensor, Tensor]:
    shapes = ((1, H, n_queries, D), (1, K, n_keys, D), (1, K, n_keys, E))
    q, k, v = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    return q, k, v


def assert_as_defined(q: Tensor, k: Tensor, v: Tensor, mask: gf.Mask) -> None:
    """Result and gradients equal those of the definition, which reads the mask as a matrix."""
    assert gf.explain(q, k, v, mask=mask).backend == "padded"
    out = gf.attention(q, k, v, mask=mask)
    expected = reference.attention(q, k, v, mask=mask)
    assert_close(out, expected, atol=1e-12)
    towards = torch.randn_like(out)
    found = torch.autograd.grad(out, (q, k, v), towards)
    wanted = torch.autograd.grad(expected, (q, k, v), towards)
    for own, other in zip(found, wanted, strict=True):
        assert_close(own, other, atol=1e-12)


@given(lengths, st.booleans())
@settings(deadline=None, max_examples=40)
def test_packed_texts_are_documents(own: list[int], is_causal: bool) -> None:
    q, k, v = operands(sum(own), sum(own))
    mask = gf.Sequences.of(own)
    ids = torch.repeat_interleave(torch.arange(len(own)), torch.tensor(own))
    assert_same(mask.dense(sum(own)), gf.Documents(ids).dense(sum(own)))
    assert_as_defined(q, k, v, gf.Causal() & mask if is_causal else mask)
    assert_as_defined(q, k, v, mask & gf.Causal() if is_causal else mask)


@given(lengths, st.data())
@settings(deadline=None, max_examples=40)
def test_queries_of_other_texts(own: list[int], data: st.DataObject) -> None:
    sizes = st.lists(st.integers(1, 9), min_size=len(own), max_size=len(own))
    asking = data.draw(sizes)
    assert_as_defined(*operands(sum(asking), sum(own)), gf.Sequences.of(own, asking))


@pytest.mark.parametrize("kind", ["alibi", "relative"])
@pytest.mark.parametrize("is_causal", [False, True])
def test_biases_of_distances(kind: str, is_causal: bool) -> None:
    own = [4, 9, 1]
    q, k, v = operands(14, 14)
    bias: gf.Bias = gf.ALiBi.of_heads(H)
    if kind == "relative":
        bias = gf.RelativeBuckets(torch.randn(8, H), bidirectional=not is_causal, max_distance=5)
    mask: gf.Mask = gf.Sequences.of(own)
    mask = gf.Causal() & mask if is_causal else mask
    assert gf.explain(q, k, v, mask=mask, bias=bias).backend == "padded"
    out = gf.attention(q, k, v, mask=mask, bias=bias)
    assert_close(out, reference.attention(q, k, v, mask=mask, bias=bias), atol=1e-12)


def test_each_text_is_as_if_it_were_alone() -> None:
    own = [3, 7, 2]
    q, k, v = operands(12, 12)
    out = gf.attention(q, k, v, mask=gf.Causal() & gf.Sequences.of(own))
    start = 0
    for n in own:
        here = slice(start, start + n)
        alone = gf.attention(q[:, :, here], k[:, :, here], v[:, :, here], mask=gf.Causal())
        assert_close(out[:, :, here], alone, atol=1e-12)
        start += n


@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch
@pytest.mark.parametrize("is_causal", [False, True])
def test_one_compiled_program_serves_all_lengths(is_causal: bool) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor, row: PackedRow) -> Tensor:
        mask = gf.Sequences.between(row)
        return gf.attention(q, k, v, mask=gf.Causal() & mask if is_causal else mask)

    torch._dynamo.reset()
    compiled = torch.compile(attend, fullgraph=True, dynamic=True, backend="aot_eager")
    for own in ([3, 7, 2], [17, 20, 18, 19], [5, 5]):
        q, k, v = operands(sum(own), sum(own))
        row = PackedRow.of(own)
        assert_close(compiled(q, k, v, row), attend(q, k, v, row), atol=1e-12)
        found, wanted = (
            torch.autograd.grad(run(q, k, v, row).square().sum(), (q, k, v))
            for run in (compiled, attend)
        )
        for a, b in zip(found, wanted, strict=True):
            assert_close(a, b, atol=1e-12)


def test_second_derivatives() -> None:
    """Inside torch.func, kernels that have no second derivatives are left out."""
    q, k, v = operands(5, 5)
    mask = gf.Sequences.of([2, 3])

    def energy(q: Tensor) -> Tensor:
        return gf.attention(q, k.detach(), v.detach(), mask=mask).square().sum()

    found = torch.func.grad(lambda q: torch.func.grad(energy)(q).square().sum())(q)
    documents = gf.Documents([0, 0, 1, 1, 1])

    def by_documents(q: Tensor) -> Tensor:
        return reference.attention(q, k.detach(), v.detach(), mask=documents).square().sum()

    expected = torch.func.grad(lambda q: torch.func.grad(by_documents)(q).square().sum())(q)
    assert_close(found, expected, atol=1e-10)


@pytest.mark.plain
def test_what_does_not_fit_is_one_sentence() -> None:
    q, k, v = operands(5, 5)
    with pytest.raises(ShapeError, match=r"one row of 4 queries and 4 keys; got a batch of 1 with"):
        gf.attention(q, k, v, mask=gf.Sequences.of([1, 3]))
    with pytest.raises(ShapeError, match=r"a length of at least 1 for each text; got \[2, 0\]"):
        gf.Sequences.of([2, 0])
    with pytest.raises(ShapeError, match="from as many texts; got 1 and 2"):
        gf.Sequences.of([2, 3], [5])
    with pytest.raises(BackendError, match="'padded' cannot compute this exactly: only texts"):
        gf.attention(q, k, v, mask=gf.Causal(), backend="padded")
    with pytest.raises(BackendError, match="this bias has cells of the packed row"):
        mask, bias = gf.Sequences.of([2, 3]), torch.zeros(5, 5, dtype=torch.float64)
        gf.attention(q, k, v, mask=mask, bias=bias, backend="padded")
