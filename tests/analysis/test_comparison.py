"""Two traces compared: the distance is that of the dense weights, and what cannot be is told."""

import sys

import pytest
import torch

import glassformer as gf
from closeness import assert_close
from glassformer.analysis import compare
from glassformer.errors import TraceError
from glassformer.tracing import Run, Trace, record, watch
from letter_models import letter_model


def traces() -> tuple[Trace, Trace]:
    first, second = letter_model("decoder"), letter_model("decoder")
    with torch.no_grad():
        second.decoder.blocks[1].attention.qkv.weight[0] += 3.0  # head 0 of layer 1 asks otherwise
    tokens = torch.tensor([first.tokenizer.encode("hello you")])
    found = []
    for model in (first, second):
        with watch(model) as trace, torch.no_grad():
            model(tokens)
        found.append(trace)
    return found[0], found[1]


def test_the_distance_of_dense_weights() -> None:
    first, second = traces()
    compared = compare(first, second)
    assert list(compared.sites) == ["decoder.0.self", "decoder.1.self"]
    for name, rows in compared.sites.items():
        dense = 0.5 * (first[name].weights() - second[name].weights()).abs().sum(-1)
        assert_close(rows, dense, 1e-6)
    assert compared.by_head("decoder.0.self").max() == 0
    changed = compared.by_head("decoder.1.self")
    assert changed[0] > 1e-3 and changed[1] == 0
    site, head, query, value = compared.most_changed(1)[0]
    assert (site, head) == ("decoder.1.self", 0)
    assert value == pytest.approx(float(compared.sites[site][0].max()))
    assert query == int(compared.sites[site][0].argmax())


def test_chunks_of_rows_are_the_whole(monkeypatch) -> None:
    first, second = traces()
    whole = compare(first, second).sites["decoder.1.self"]
    shares: list[float] = []
    monkeypatch.setattr(sys.modules["glassformer.analysis.comparison"], "_MOST_CELLS", 40)
    assert_close(
        compare(first, second, progress=shares.append).sites["decoder.1.self"], whole, 1e-6
    )
    assert shares == [0.5, 1.0]


def test_what_only_one_has_is_listed() -> None:
    first, second = traces()
    del second.run.sites["decoder.0.self"]
    compared = compare(first, second)
    assert compared.only_first == ["decoder.0.self"] and compared.only_second == []


@pytest.mark.plain
def test_nothing_in_common() -> None:
    first, _ = traces()
    q, k, v = torch.randn(3, 1, 2, 5, 4).unbind(0)
    other = Trace([Run({"mine": record(q, k, v, mask=gf.Causal())})])
    with pytest.raises(TraceError, match=r"decoder.0.self of 2 × 9 × 9 and mine of 2 × 5 × 5"):
        compare(first, other)
