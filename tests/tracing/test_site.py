"""A site by itself: some of its rows, and one of its heads alone."""

import pytest
import torch

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.errors import TraceError
from glassformer.tracing import Site

B, H, K, L, S, D = 2, 6, 3, 7, 11, 5


@pytest.fixture(params=[torch.float32, torch.float64])
def site(request: pytest.FixtureRequest) -> Site:
    """Grouped heads, each with a mask, a bias and a number of its own; one row sees nothing."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(B, h, n, D, dtype=request.param) for h, n in ((H, L), (K, S), (K, S)))
    mask = torch.rand(B, H, L, S) > 0.3
    mask[1, 4, 2] = False
    return Site(
        name="example",
        q=q,
        k=k,
        v=v,
        mask=gf.Explicit(mask) & gf.Causal(),
        bias=gf.ALiBi(torch.rand(H, dtype=request.param)) + torch.randn(B, H, 1, S).to(q),
        out=gf.attention(q, k, v),
        softcap=3.0,
        heads=(0, 2, 3, 5, 8, 9),
    )


def define(site: Site) -> torch.Tensor:
    return gf.attention_weights(site.q, site.k, **site.options)


def test_whole_rows_need_no_pass_over_all_rows(site: Site) -> None:
    rows = [6, 2, 3]
    direct = site.weights(head=8, rows=rows, sequence=1)
    every = site.weights(rows=rows, sequence=1)
    assert "lse" not in site._kept
    assert_close(direct, define(site)[1, 4, rows], 1e-6)
    assert_close(every, define(site)[1][:, rows], 1e-6)
    assert (direct[1] == 0).all()  # nothing is allowed
    site.lse
    assert_close(site.weights(head=8, rows=rows, sequence=1), direct, 1e-6)
    assert_close(site.weights(rows=rows, sequence=1), every, 1e-6)
    assert_close(site.weights(head=8, rows=rows, cols=[4, 0], sequence=1), direct[:, [4, 0]], 1e-6)


def test_what_is_not_a_number_stays_so(site: Site) -> None:
    site.q[0, 4, 3, 1] = torch.nan
    weights = site.weights(head=8)
    assert weights[3].isnan().any() and not weights[[0, 1, 2, 4, 5, 6]].isnan().any()


def test_a_single_head_is_as_among_the_others(site: Site) -> None:
    for index, head in enumerate(site.head_numbers):
        one = site.single_head(head)
        assert one.head_numbers == (head,) and one.shape == (B, 1, L, S)
        assert_same(one.out[:, 0], site.out[:, index])
        assert_close(one.weights(head, sequence=1), define(site)[1, index], 1e-6)
        assert_close(one.entropy(head), site.entropy(head), 1e-5)
        assert one.q.untyped_storage().data_ptr() == site.q.untyped_storage().data_ptr()


def test_heads_that_were_not_recorded_are_named(site: Site) -> None:
    with pytest.raises(TraceError, match="heads 0, 2, 3, 5, 8, 9 were recorded; got head=4"):
        site.single_head(4)
    with pytest.raises(TraceError, match="heads 0, 2, 3, 5, 8, 9 were recorded; got head=1"):
        site.weights(head=1)
    with pytest.raises(TraceError, match=r"sequences 0 … 1; got sequence=2"):
        site.weights(sequence=2)


def test_no_keys_no_weights() -> None:
    q, k = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 0, 4)
    assert Site(name="empty", q=q, k=k, v=k).weights(head=1).shape == (3, 0)
