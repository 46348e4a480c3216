"""Graphs and transforms of PyTorch, where no value may be read; benchmarks/transforms.py has all
kinds of masks, here is what it does not show."""

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

import glassformer as gf
from closeness import assert_close
from glassformer.errors import BackendError

pytestmark = [pytest.mark.plain, pytest.mark.filterwarnings("ignore")]

H, D = 2, 4
COMPOSED = [~gf.Window(1), gf.Causal() & gf.Window(2), gf.Window(2) | gf.Prefix(1), gf.Window(9, 9)]


def operands(L: int, S: int | None = None) -> tuple[Tensor, ...]:
    return tuple(torch.randn(1, H, n, D) for n in (L, S or L, S or L))


class Attention(torch.nn.Module):
    def __init__(self, **options) -> None:
        super().__init__()
        self.options = options

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return gf.attention(q, k, v, **self.options)


@pytest.mark.parametrize("mask", COMPOSED, ids=repr)
def test_composed_masks_leave_lengths_dynamic(mask: gf.Mask) -> None:
    n = torch.export.Dim("n", min=2, max=999)
    module = Attention(mask=mask)
    program = torch.export.export(module, operands(20), dynamic_shapes=({2: n},) * 3).module()
    torch._dynamo.reset()
    compiled = torch.compile(module, dynamic=True, fullgraph=True, backend="aot_eager")
    for length in (2, 7, 33):
        inputs = operands(length)
        assert_close(program(*inputs), module(*inputs), 1e-6)
        assert_close(compiled(*inputs), module(*inputs), 1e-6)


@pytest.mark.parametrize("options", [{}, {"softcap": 2.0}])
def test_an_export_serves_any_two_lengths(options: dict) -> None:
    """Causal has one flag for L = S and others for L > S and L < S; an export may take none."""
    L, S = (torch.export.Dim(name, min=2, max=999) for name in "LS")
    module = Attention(mask=gf.Causal(), **options)
    program = torch.export.export(
        module, operands(19, 23), dynamic_shapes=({2: L}, {2: S}, {2: S})
    ).module()
    for lengths in ((5, 5), (30, 30), (3, 40), (40, 3), (40, 17)):
        inputs = operands(*lengths)
        assert_close(program(*inputs), module(*inputs), 1e-6)


def test_an_export_with_at_least_a_register_of_keys_keeps_the_flag() -> None:
    def nodes(least: int) -> str:
        n = torch.export.Dim("n", min=least, max=999)
        module = Attention(mask=gf.Causal())
        return str(torch.export.export(module, operands(20), dynamic_shapes=({2: n},) * 3).graph)

    assert "triu" in nodes(2)
    assert "triu" not in nodes(16)


def test_nan_stays_visible_in_graphs() -> None:
    n = torch.export.Dim("n", min=2, max=999)
    for options in ({}, {"mask": gf.Causal()}):
        module = Attention(**options)
        program = torch.export.export(module, operands(20), dynamic_shapes=({2: n},) * 3).module()
        torch._dynamo.reset()
        compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
        for length in (2, 3, 20):
            q, k, v = operands(length)
            q[0, 1, 1] = torch.nan
            for function in (program, compiled):
                out = function(q, k, v)
                assert out[0, 1, 1].isnan().all()
                assert out[0, 0].isfinite().all()


def test_one_dynamic_graph_serves_all_longer_lengths() -> None:
    graphs = []

    def counting(graph, _inputs):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(
        Attention(mask=gf.Causal()), dynamic=True, fullgraph=True, backend=counting
    )
    for length in (20, 31, 57):
        compiled(*operands(length))
    assert len(graphs) == 1


def test_vmap_over_the_data_of_a_mask() -> None:
    q, k, v = (torch.randn(3, 1, H, 7, D) for _ in range(3))
    lengths = torch.tensor([[2], [7], [4]])

    def run(q, k, v, n, **options):
        return gf.attention(q, k, v, mask=gf.Causal() & gf.Padding(n), **options)

    for options in ({}, {"softcap": 2.0}):
        got = torch.func.vmap(lambda *x: run(*x, **options))(q, k, v, lengths)  # noqa: B023
        for i in range(3):
            assert_close(got[i], run(q[i], k[i], v[i], lengths[i], **options), 1e-6)


def test_gradients_of_gradients_by_torch_func() -> None:
    q, k, v = (x.double() for x in operands(5))

    def loss(q: Tensor) -> Tensor:
        return gf.attention(q, k, v, mask=gf.Causal()).sin().sum()

    by_reverse = torch.func.jacrev(torch.func.jacrev(loss))(q)
    assert_close(by_reverse, torch.func.hessian(loss)(q), 1e-12)
    assert by_reverse.abs().max() > 1e-3
    leaf = q.clone().requires_grad_()

    def slow(q: Tensor) -> Tensor:
        return gf.attention(q, k, v, mask=gf.Causal(), backend="reference").sin().sum()

    assert_close(by_reverse, torch.autograd.functional.hessian(slow, leaf), 1e-12)


def test_forward_mode_without_torch_func() -> None:
    import torch.autograd.forward_ad as forward_ad

    q, k, v = operands(20)
    tangent = torch.randn_like(q)
    with forward_ad.dual_level():
        out = gf.attention(forward_ad.make_dual(q, tangent), k, v, mask=gf.Causal())
        got = forward_ad.unpack_dual(out).tangent
    _, right = torch.func.jvp(lambda q: gf.attention(q, k, v, mask=gf.Causal()), (q,), (tangent,))
    assert_close(got, right, 1e-6)


def test_backends_that_cannot_say_what_to_do() -> None:
    q, k, v = operands(5)
    for backend, sentence in (
        ("streaming", r"plans by the values of masks.*use backend='sdpa'"),
        ("flex", r"cannot run inside another graph or transform.*use backend='sdpa'"),
    ):
        with pytest.raises(BackendError, match=sentence):
            torch.func.grad(lambda q, name=backend: gf.attention(q, k, v, backend=name).sum())(q)
    with pytest.raises(
        BackendError, match=r"no forward-mode and no second.*use backend='reference'"
    ):
        torch.func.jvp(lambda q: gf.attention(q, k, v, backend="sdpa"), (q,), (q,))


def test_fake_and_meta_tensors_with_lists_in_masks() -> None:
    with FakeTensorMode():
        q, k, v = operands(9)
        mask = gf.Causal() & gf.Padding([5])
        for options in ({"mask": mask}, {"mask": mask, "softcap": 2.0}, {"softcap": 2.0}):
            assert gf.attention(q, k, v, **options).shape == (1, H, 9, D)
    on_meta = tuple(x.to("meta") for x in operands(9))
    mask = gf.Causal() & gf.Padding([5])
    assert gf.attention(*on_meta, mask=mask, softcap=2.0).shape == (1, H, 9, D)
