"""Affine lenses as values: saved to the bit, refused on another model."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import glassformer as gf
from glassformer.analysis import AffineLens
from glassformer.analysis.affine_lens import Fingerprint
from glassformer.errors import TraceError
from glassformer.tracing import Trace
from letter_models import letter_model
from tiny_models import tiny


def watched(model) -> Trace:
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(torch.arange(3, 9)[None])
    return trace


def lens_of(trace: Trace) -> AffineLens:
    torch.manual_seed(1)
    stream = trace.residual()
    C = stream.start.shape[-1]
    return AffineLens(
        kind="tuned",
        stack=stream.name,
        borders=[stream.borders[0], stream.borders[2]],
        matrices=torch.randn(2, C, C),
        biases=torch.randn(2, C),
        fingerprint=Fingerprint.of(stream, stream.readout),
        plain=[3.25, 1.0],
        mapped=[1.5, 1 / 3],
    )


def test_saved_and_loaded_to_the_bit(tmp_path: Path) -> None:
    lens = lens_of(watched(tiny("llama")))
    lens.save(tmp_path / "a.lens")
    lens.save(tmp_path / "a.lens")  # replaces a lens
    loaded = AffineLens.load(tmp_path / "a.lens")
    assert torch.equal(loaded.matrices, lens.matrices) and torch.equal(loaded.biases, lens.biases)
    for name in ("kind", "stack", "borders", "fingerprint", "plain", "mapped"):
        assert getattr(loaded, name) == getattr(lens, name)
    assert str(loaded) == str(lens) and "decoder.0.mlp     1.000     0.333" in str(lens)
    assert repr(lens).startswith("AffineLens(tuned, decoder.start … decoder.0.mlp; 2 layers, width")


def test_states_are_mapped_before_they_are_read() -> None:
    trace = watched(tiny("llama"))
    lens, stream = lens_of(trace), trace.residual()
    found = gf.logit_lens(trace, lens=lens, top=3)
    assert found.borders == ["decoder.start", "decoder.0.mlp", stream.borders[-1]]
    x = stream.after("decoder.0.mlp")
    by_hand = stream.readout(x @ lens.matrices[1].mT + lens.biases[1])[0]
    assert torch.equal(found.tokens[1], by_hand.topk(3, dim=-1).indices)
    assert torch.equal(found.tokens[-1], gf.logit_lens(trace, top=3).tokens[-1])
    assert found.divergence[-1].max() == 0


def test_refused_on_another_model() -> None:
    model = tiny("llama")
    lens = lens_of(watched(model))
    with pytest.raises(TraceError, match="2 layers, width 24 and 37 tokens; this one has 2 layers"):
        gf.logit_lens(watched(tiny("gpt2")), lens=lens)
    with torch.no_grad():
        model.lm_head.weight[5] += 0.5
    with pytest.raises(TraceError, match="another model of the same size: their unembeddings"):
        gf.logit_lens(watched(model), lens=lens)
    with pytest.raises(TraceError, match="made for the stream of 'encoder'; got that of 'decoder'"):
        gf.logit_lens(watched(model), lens=replace(lens, stack="encoder"))


def test_another_precision_is_the_same_model() -> None:
    lens = lens_of(watched(tiny("llama")))
    assert gf.logit_lens(watched(tiny("llama").bfloat16()), lens=lens).borders[0] == "decoder.start"


@pytest.mark.parametrize("family", ["decoder", "encoder"])
def test_ours_have_a_fingerprint(family: str) -> None:
    trace = watched(letter_model(family))
    stream = trace.residual()
    found = Fingerprint.of(stream, stream.readout)
    assert found.dim == stream.start.shape[-1]
    assert found.vocab_size == stream.readout(stream.end).shape[-1]


def test_bad_files_are_one_sentence(tmp_path: Path) -> None:
    lens = lens_of(watched(tiny("llama")))
    path = tmp_path / "a.lens"
    with pytest.raises(TraceError, match="is not there"):
        AffineLens.load(path)
    path.write_text("no lens")
    with pytest.raises(TraceError, match="is not a lens, or was not written to its end"):
        AffineLens.load(path)
    with pytest.raises(TraceError, match="glassformer did not write it"):
        lens.save(path)
    assert path.read_text() == "no lens" and [p.name for p in tmp_path.iterdir()] == ["a.lens"]
    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(TraceError, match="must be a lens of glassformer; it is another file"):
        AffineLens.load(path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 2}, "is a lens of version 2; this glassformer reads version 1"),
        ({"kind": "magic"}, "is damaged: "),
        ({"borders": ["decoder.start"]}, r"matrices must have shape \(1, 24, 24\)"),
        ({"plain": [1.0]}, "two divergences for each of its borders"),
    ],
)
def test_damaged_headers_are_one_sentence(tmp_path: Path, change: dict, reason: str) -> None:
    lens = lens_of(watched(tiny("llama")))
    path = tmp_path / "a.lens"
    lens.save(path)
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["glassformer.lens"])
    tensors = {"matrices": lens.matrices, "biases": lens.biases}
    save_file(tensors, path, metadata={"glassformer.lens": json.dumps(header | change)})
    with pytest.raises(TraceError, match=reason):
        AffineLens.load(path)
