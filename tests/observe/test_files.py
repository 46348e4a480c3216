"""A trace as a file: what is saved comes back, and damage is told in a sentence."""

import random
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.errors import TraceError
from glassformer.observe import Run, Trace, observe, record
from letter_models import letter_model


@pytest.fixture
def trace() -> Trace:
    both = letter_model("encoder_decoder")
    with observe(both, outputs=True) as seen:
        gf.translate(both, "hello", beams=2, max_new=4)
        gf.translate(both, "you", beams=1, max_new=3)
    return seen


def test_what_is_saved_comes_back(trace: Trace, tmp_path: Path) -> None:
    trace.save(tmp_path / "cat.trace")
    again = Trace.load(tmp_path / "cat.trace")
    assert [p.name for p in tmp_path.iterdir()] == ["cat.trace"]
    assert again.model == trace.model
    assert again.names == trace.names and len(again.runs) == 2
    for mine, other in zip(trace.runs, again.runs, strict=True):
        assert list(mine.sites) == list(other.sites)
        for name, site in mine.sites.items():
            copy = other.sites[name]
            for operand in ("q", "k", "v", "out"):
                assert_same(getattr(copy, operand), getattr(site, operand))
            assert (copy.queries, copy.keys, copy.scale) == (site.queries, site.keys, site.scale)
            assert_same(copy.weights(), site.weights())
        for text, words in mine.texts.items():
            assert_same(other.texts[text].tokens, words.tokens)
            assert other.texts[text].labels == words.labels


MASKS = [
    None,
    gf.Causal(),
    gf.Causal() & ~gf.Prefix(torch.tensor([1, 0])) | gf.Window(left=1, right=0),
    gf.Padding(torch.tensor([5, 2])),
    gf.Documents(torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 2, 2]])),
    gf.Explicit(torch.rand(5, 5) > 0.3),
]
BIASES = [
    None,
    gf.ALiBi.of_heads(2),
    gf.RelativeBuckets(torch.randn(8, 2), max_distance=9) + gf.ALiBi.of_heads(2),
    gf.ExplicitBias(torch.randn(5, 5)),
]


@pytest.mark.parametrize("mask", range(len(MASKS)))
@pytest.mark.parametrize("bias", range(len(BIASES)))
def test_every_mask_and_bias_comes_back(mask: int, bias: int, tmp_path: Path) -> None:
    q, k, v = torch.randn(3, 2, 2, 5, 4).unbind(0)
    site = record(q, k, v, mask=MASKS[mask], bias=BIASES[bias], softcap=3.0, scale=0.7)
    Trace([Run({"attention": site})]).save(tmp_path / "one.trace")
    copy = Trace.load(tmp_path / "one.trace")["attention"]
    for sequence in range(2):
        assert_same(copy.weights(sequence=sequence), site.weights(sequence=sequence))


def test_dtypes_are_kept(tmp_path: Path) -> None:
    q, k, v = torch.randn(3, 1, 2, 5, 4).bfloat16().unbind(0)
    Trace([Run({"attention": record(q, k, v)})]).save(tmp_path / "one.trace")
    site = Trace.load(tmp_path / "one.trace")["attention"]
    assert site.q.dtype == torch.bfloat16
    assert_close(site.weights().sum(-1), torch.ones(2, 5), 1e-5)


def test_truncation_anywhere_is_refused(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "cat.trace"
    trace.save(path)
    content = path.read_bytes()
    for offset in [0, *random.Random(0).sample(range(len(content) - 1), k=100)]:
        path.write_bytes(content[:offset])
        with pytest.raises(TraceError) as caught:
            Trace.load(path)
        assert "\n" not in str(caught.value)


@pytest.mark.plain
def test_refusals(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"must be a file; .*nowhere.trace is not there"):
        Trace.load(tmp_path / "nowhere.trace")
    save_file({"a": torch.zeros(1)}, tmp_path / "other.trace")
    with pytest.raises(TraceError, match=r"must be a trace of glassformer; it is another file"):
        Trace.load(tmp_path / "other.trace")
    save_file({}, tmp_path / "new.trace", metadata={"glassformer.trace": '{"version": 9}'})
    with pytest.raises(TraceError, match=r"version 9; this glassformer reads version 1"):
        Trace.load(tmp_path / "new.trace")
    save_file({}, tmp_path / "odd.trace", metadata={"glassformer.trace": '{"version": 1}'})
    with pytest.raises(TraceError, match=r"odd.trace is damaged: KeyError 'runs'"):
        Trace.load(tmp_path / "odd.trace")
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match=r"could not be written"):
        trace.save(tmp_path / "file" / "cat.trace")
