import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import ConfigError, ShapeError
from glassformer.training.batches import (
    Batch,
    Ragged,
    batch_by_tokens,
    content_rng,
    padding_share,
    window_batches,
)
from glassformer.training.loss import IGNORED

LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=60)


@given(LENGTHS, st.integers(0, 2**31), st.integers(0, 9), st.integers(40, 200), st.integers(1, 70))
def test_every_example_once_an_epoch(lengths, seed, epoch, max_tokens, pool):
    sides = np.array(lengths)
    batches = batch_by_tokens(sides, max_tokens=max_tokens, seed=seed, epoch=epoch, pool=pool)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(sides)))
    for rows in batches:
        assert len(rows) * sides[rows].max() <= max_tokens


@given(LENGTHS, st.integers(0, 2**31), st.integers(0, 9))
def test_the_order_is_a_function_of_seed_and_epoch(lengths, seed, epoch):
    sides = np.array(lengths)
    first, second = (
        [r.tolist() for r in batch_by_tokens(sides, max_tokens=99, seed=seed, epoch=epoch)]
        for _ in range(2)
    )
    assert first == second


def test_epochs_and_seeds_differ():
    lengths = np.arange(1, 50)
    orders = {
        str([r.tolist() for r in batch_by_tokens(lengths, max_tokens=100, seed=s, epoch=e)])
        for s in (0, 1)
        for e in (0, 1)
    }
    assert len(orders) == 4


def test_little_padding_among_neighbours_of_like_length():
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 60, 5000)
    batches = batch_by_tokens(lengths, max_tokens=1000, seed=1)
    assert padding_share(lengths, batches) < 0.03
    shuffled = [rng.permutation(5000)[i : i + 30] for i in range(0, 5000, 30)]
    assert padding_share(lengths, shuffled) > 0.3  # what it would be otherwise
    pairs = np.stack([lengths, np.maximum(1, lengths + rng.integers(-3, 4, 5000))], axis=1)
    assert padding_share(pairs, batch_by_tokens(pairs, max_tokens=1000, seed=1)) < 0.08


def test_at_most_so_many_rows():
    batches = batch_by_tokens(np.ones(10, dtype=int), max_tokens=100, max_rows=4)
    assert [len(rows) for rows in batches] == [4, 4, 2]


def test_a_text_longer_than_a_batch_is_named():
    with pytest.raises(ConfigError, match=r"max_tokens=5; example 1 has 9 tokens"):
        batch_by_tokens(np.array([3, 9]), max_tokens=5)


@given(st.integers(30, 400), st.integers(1, 20), st.integers(1, 7), st.integers(0, 99))
def test_windows_lie_side_by_side(n, length, rows, epoch):
    batches = window_batches(n, length=length, rows=rows, seed=5, epoch=epoch)
    starts = np.sort(np.concatenate(batches))
    assert (np.diff(starts) == length).all()
    assert starts[0] < length and starts[-1] + length < n  # a next token for each
    assert starts[-1] + 2 * length >= n  # no more would fit


def test_windows_anywhere():
    batches = window_batches(1000, length=10, rows=8, seed=5, epoch=0, at_random=True)
    starts = np.concatenate(batches)
    assert len(batches) == 12 and starts.min() >= 0 and starts.max() < 990
    assert len(set((starts % 10).tolist())) == 10


def test_a_text_must_be_longer_than_a_window():
    with pytest.raises(ConfigError, match="window of 20 tokens; it has 20"):
        window_batches(20, length=20, rows=1, seed=0, epoch=0)


def test_padding_of_small_unsigned_numbers():
    texts = Ragged(np.array([7, 8, 9], dtype=np.uint16), np.array([1, 2]))
    padded, lengths = texts.pad_rows(np.array([0, 1]), pad=IGNORED, round_to=4)
    assert padded.tolist() == [[7, -100, -100, -100], [8, 9, -100, -100]]
    assert lengths.tolist() == [1, 2] and texts[1] == [8, 9]


@given(st.integers(1, 9), st.integers(1, 5))
def test_shares_make_the_whole(n_rows, world_size):
    tensors = {"tokens": torch.arange(n_rows)[:, None], "targets": torch.arange(n_rows)[:, None]}
    batch = Batch(tensors, n_targets=n_rows, n_tokens=n_rows)
    shares = [batch.shard(rank, world_size) for rank in range(world_size)]
    targets = torch.cat([share.tensors["targets"] for share in shares]).flatten()
    assert sorted(targets[targets != IGNORED].tolist()) == list(range(n_rows))
    assert all(len(share.tensors["targets"]) >= 1 for share in shares)
    assert all(share.n_targets == n_rows for share in shares)


def test_what_is_random_inside_is_a_function_of_the_place():
    assert content_rng(1, 2, 3).random() == content_rng(1, 2, 3).random()
    assert content_rng(1, 2, 3).random() != content_rng(1, 2, 4).random()


@pytest.mark.plain
@pytest.mark.parametrize("name", ["tokens", "source"])
def test_tokens_are_checked_before_they_reach_a_gpu(name):
    Batch({name: torch.tensor([[0, 6]])}, 1, 1).check_tokens(7)
    with pytest.raises(ShapeError, match="token ids must lie in 0 … 5; got 0 to 6"):
        Batch({name: torch.tensor([[0, 6]])}, 1, 1).check_tokens(6)
