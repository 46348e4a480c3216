"""Packed batches and paged caches against the dense matrix of each sequence."""

from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.functional.statistics import cpu
from packed_batches import MASKS, WITHIN, assert_like_dense, dense_statistics, make_batch

LENGTHS = st.lists(st.tuples(st.integers(0, 19), st.integers(0, 23)), min_size=1, max_size=4)


@given(
    lengths=LENGTHS,
    heads=st.sampled_from([(1, 1), (6, 3), (4, 1)]),
    block=st.sampled_from([None, 1, 3, 16]),
    mask=st.sampled_from(list(MASKS)),
    softcap=st.sampled_from([None, 2.0]),
    has_sinks=st.booleans(),
    has_slopes=st.booleans(),
    observe=st.integers(1, 25),
    top=st.integers(1, 5),
    in_c=st.booleans(),
    knows_lse=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=120)
def test_every_result_of_any_batch(
    lengths, heads, block, mask, softcap, has_sinks, has_slopes, observe, top, in_c, knows_lse, seed
) -> None:
    torch.manual_seed(seed)
    batch = make_batch(lengths, heads=heads, block=block)
    sinks = torch.randn(heads[0]) if has_sinks else None
    slopes = torch.rand(heads[0]) * 0.1 if has_slopes else None
    expected = dense_statistics(
        batch,
        MASKS[mask][1],
        softcap=softcap,
        sinks=sinks,
        slopes=slopes,
        observe=observe,
        top=top,
    )
    # The kernel in C leaves small calls, soft caps, biases and `top` to PyTorch.
    with mock.patch.object(cpu, "FEW", 1 if in_c else cpu.FEW):
        got = gf.attention_statistics(
            batch.q,
            batch.k,
            packed=batch.packed,
            mask=MASKS[mask][0],
            softcap=softcap,
            sinks=sinks,
            bias=None if slopes is None else gf.ALiBi(slopes),
            within=[m for m, _ in WITHIN],
            observe=observe,
            top=None if in_c else top,
            lse=expected["lse"].float() if knows_lse else None,
        )
    assert got.lse.dtype == torch.float32
    assert (got.sink is None) == (sinks is None)
    assert_like_dense(got, expected)


def test_a_batch_is_its_sequences_side_by_side() -> None:
    batch = make_batch([(40, 40), (1, 90), (33, 60)], width=16)
    options = {"mask": gf.Causal(), "observe": 8, "within": gf.Window(left=20)}
    got = gf.attention_statistics(batch.q, batch.k, packed=batch.packed, **options)
    alone = [gf.attention_statistics(q, k, **options) for q, k in batch.sequences]
    for name in ("lse", "entropy", "peak", "distance", "received", "observed"):
        assert_close(
            getattr(got, name), torch.cat([getattr(a, name) for a in alone], 2), 1e-6, name
        )
    assert_close(got.largest, torch.stack([a.largest for a in alone]).amax(0), 1e-6)
    assert_close(got.within[0], torch.cat([a.within[0] for a in alone], 2), 1e-6)


def test_lists_are_starts_and_progress_counts_sequences() -> None:
    q = torch.randn(1, 2, 5, 8)
    told: list[float] = []
    got = gf.attention_statistics(q, q, packed=gf.Packed([0, 3, 5]), progress=told.append)
    assert told == [0.5, 1.0]
    documents = gf.attention_statistics(q, q, mask=gf.Documents(torch.tensor([0, 0, 0, 1, 1])))
    assert_close(got.received, documents.received, 1e-6)


def test_gradients_and_autocast_are_left_alone() -> None:
    q = torch.randn(1, 2, 5, 8, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = gf.attention_statistics(q, q, packed=gf.Packed([0, 3, 5]), observe=2)
    assert not got.observed.requires_grad
    assert_same(got.lse, gf.attention_statistics(q, q, packed=gf.Packed([0, 3, 5])).lse)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("packed", "sentence"),
    [
        (
            gf.Packed([0, 3, 4]),
            r"query_starts must end at the number of queries, 5; got \[0, 3, 4\]",
        ),
        (gf.Packed([1, 5]), r"query_starts must begin with 0 and never fall; got \[1, 5\]"),
        (gf.Packed([0, 4, 3, 5]), r"never fall; got \[0, 4, 3, 5\]"),
        (gf.Packed([0]), r"one entry per sequence and one more; got torch.int64 of shape \(1,\)"),
        (gf.Packed([0, 5], [0, 4]), "key_starts must end at the number of keys, 5"),
        (gf.Packed([0, 5], [0, 2, 5]), "got 2 and 3 entries"),
        (gf.Packed([0, *[5] * 9]), None),
        (gf.Packed([0, *[4] * 9]), r"5; got \[0, …, 4\]"),
    ],
    ids=str,
)
def test_starts_that_do_not_fit(packed: gf.Packed, sentence: str | None) -> None:
    q = torch.randn(1, 2, 5, 8)
    if sentence is None:
        gf.attention_statistics(q, q, packed=packed)
        return
    with pytest.raises(gf.GlassformerError, match=sentence):
        gf.attention_statistics(q, q, packed=packed)


@pytest.mark.plain
def test_tables_that_do_not_fit() -> None:
    q, cache = torch.randn(1, 2, 5, 8), torch.randn(3, 2, 4, 8)

    def table(*rows: list[int]) -> gf.Packed:
        return gf.Packed([0, 5], [0, 9], torch.tensor(rows))

    gf.attention_statistics(q, cache, packed=table([2, 0, 1, -1]))
    for packed, sentence in (
        (table([2, 0]), "9 keys needs 3 blocks of 4; block_table has 2 columns"),
        (table([2, 0, 3]), "blocks 0 … 2; got values from 0 to 3"),
        (table([2, 0, 1], [2, 0, 1]), r"each of 1 sequences; got torch.int64 of shape \(2, 3\)"),
        (gf.Packed([0, 5], [0, 9], torch.tensor([[0, 1, 2]]), n_keys=8), "number of keys, 8"),
    ):
        with pytest.raises(gf.GlassformerError, match=sentence):
            gf.attention_statistics(q, cache, packed=packed)
    elsewhere = gf.Packed([0, 5], [0, 9], torch.zeros(1, 3, dtype=torch.long, device="meta"))
    with pytest.raises(gf.GlassformerError, match="block_table must be on the device of k"):
        gf.attention_statistics(q, cache, packed=elsewhere)
    elsewhere = gf.Packed(torch.zeros(2, dtype=torch.long, device="meta"))
    with pytest.raises(gf.GlassformerError, match="query_starts must be on the device of q"):
        gf.attention_statistics(q, q, packed=elsewhere)


@pytest.mark.plain
def test_what_a_packed_batch_cannot_have() -> None:
    q = torch.randn(1, 2, 5, 8)
    packed = gf.Packed([0, 5])
    with pytest.raises(gf.GlassformerError, match="map_size is of one sequence"):
        gf.attention_statistics(q, q, packed=packed, map_size=3)
    with pytest.raises(gf.GlassformerError, match="query_positions is of one sequence"):
        gf.attention_statistics(q, q, packed=packed, query_positions=torch.arange(5))
    with pytest.raises(gf.GlassformerError, match=r"one row, \(1, H, L, D\); got q \(2, 2, 5, 8\)"):
        twice = q.expand(2, -1, -1, -1)
        gf.attention_statistics(twice, twice, packed=packed)
    with pytest.raises(gf.GlassformerError, match=r"lse must be \(B, H, L\) = \(1, 2, 5\)"):
        gf.attention_statistics(q, q, packed=packed, lse=torch.zeros(1, 2, 4))
