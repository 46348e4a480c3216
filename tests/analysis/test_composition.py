"""Composition of heads, held against whole matrices."""

import pytest
import torch
from torch import Tensor

import glassformer as gf
from closeness import assert_close
from glassformer.errors import TraceError
from tiny_models import tiny
from tracing.test_stream import build


def dense(found, site: str, head: int) -> tuple[Tensor, Tensor]:
    return found.qk(site, head).matrix().double(), found.ov(site, head).matrix().double()


def ratio(reading: Tensor, writing: Tensor) -> float:
    return float((reading @ writing).norm() / reading.norm() / writing.norm())


@pytest.mark.parametrize("kind", ["q", "k", "v"])
def test_scores_are_those_of_whole_matrices(kind: str) -> None:
    found = gf.circuits(build("llama"))
    composition = found.composition(kind)
    assert composition.scores.shape == (12, 12)
    for (writer, i), row in zip(composition.writers, composition.scores, strict=True):
        for (reader, j), score in zip(composition.readers, row.tolist(), strict=True):
            if (writer, reader) != ("decoder.0.self", "decoder.1.self"):
                assert score != score  # NaN: not behind the writer
                continue
            qk, ov = dense(found, reader, j)
            reading = {"q": qk.mT, "k": qk, "v": ov}[kind]
            assert abs(score - ratio(reading, dense(found, writer, i)[1])) < 1e-5


def test_the_baseline_is_that_of_random_matrices() -> None:
    torch.manual_seed(0)
    composition = gf.circuits(build("llama")).composition("k")
    drawn = []
    for _ in range(200):
        reading, writing = (torch.randn(24, 4) @ torch.randn(4, 24) for _ in range(2))
        drawn.append(ratio(reading, writing))
    assert abs(composition.baseline - sum(drawn) / len(drawn)) < 0.02
    (writer, reader, excess), *rest = composition.top(3)
    assert writer[0] == "decoder.0.self" and reader[0] == "decoder.1.self"
    best = composition.scores.nan_to_num(0).max()
    assert_close(torch.tensor(excess), best - composition.baseline, 1e-5)
    assert len(rest) == 2 and rest[0][2] <= excess
    assert "K-composition, above 0." in str(composition)


@pytest.mark.parametrize("kind", ["q", "k"])
def test_norms_of_the_stream_lie_between_heads(kind: str) -> None:
    """BART: what the encoder writes is what cross-attention's keys read, behind its norms."""
    model = tiny("bart")
    found = gf.circuits(model)
    reader, writer = "decoder.0.cross", "encoder.1.self" if kind == "k" else "decoder.0.self"
    layer = model.model.encoder.layers[1] if kind == "k" else model.model.decoder.layers[0]
    names = ["self_attn", "final"] if kind == "k" else ["self_attn"]
    between = torch.eye(12, dtype=torch.float64)
    for name in names:
        gain = getattr(layer, f"{name}_layer_norm").weight.detach().double()
        between = torch.diag(gain) @ (torch.eye(12, dtype=torch.float64) - 1 / 12) @ between
    score = found.composition(kind, writers=[writer], readers=[reader]).scores[2, 1]
    reading = dense(found, reader, 1)[0]
    reading = reading if kind == "k" else reading.mT
    # The writer is what reaches the reader: its norms are a part of it.
    by_hand = ratio(reading, between @ dense(found, writer, 2)[1])
    assert abs(float(score) - by_hand) < 1e-5


@pytest.mark.plain
def test_what_cannot_compose_is_refused() -> None:
    found = gf.circuits(build("llama"))
    with pytest.raises(TraceError, match="Composition is by 'q', 'k' or 'v'; got 'o'"):
        found.composition("o")
    with pytest.raises(TraceError, match="needs a head that reads after one that writes"):
        found.composition("k", writers=["decoder.1.self"], readers=["decoder.0.self"])
