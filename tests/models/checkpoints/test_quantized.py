"""Folders of quantized models: small, complete, and refused where they are damaged."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from closeness import assert_same
from glassformer.errors import CheckpointError
from glassformer.functional.quantized import KINDS, QuantizedWeight
from glassformer.models import Config, build, quantize
from glassformer.models.checkpoints import load, own, save
from glassformer.models.quantization import weight_kind
from glassformer.storage import sha256

CONFIG = Config(family="decoder", vocab_size=211, dim=48, n_layers=2, n_heads=3, max_len=19)


@pytest.fixture(params=KINDS)
def small(request):
    torch.manual_seed(0)
    return quantize(build(CONFIG).eval(), request.param)


def test_what_is_saved_comes_back(small, tmp_path: Path) -> None:
    save(small, tmp_path / "small")
    save(build(CONFIG), tmp_path / "float32")
    sizes = [(tmp_path / n / "model.safetensors").stat().st_size for n in ("small", "float32")]
    assert sizes[0] < 0.4 * sizes[1]
    plain = json.loads((tmp_path / "small" / "config.json").read_text())
    assert (plain["glassformer"], plain["weights"]) == (2, weight_kind(small))
    assert json.loads((tmp_path / "float32" / "config.json").read_text())["glassformer"] == 1
    found = load(tmp_path / "small")
    assert weight_kind(found) == weight_kind(small)
    for name, tensor in small.state_dict().items():
        other = found.state_dict()[name]
        assert isinstance(other, QuantizedWeight) == isinstance(tensor, QuantizedWeight)
        assert_same(other + 0, tensor + 0)
    tokens = torch.tensor([[1, 4, 9]])
    assert_same(found(tokens), small(tokens))


def test_dtype(small, tmp_path: Path) -> None:
    save(small.to(torch.bfloat16), tmp_path / "half")
    assert load(tmp_path / "half").embedding.weight.dtype == torch.bfloat16
    found = load(tmp_path / "half", dtype=torch.float32)
    weight = found.embedding.weight
    assert (weight.dtype, weight.numbers.dtype) == (torch.float32, KINDS[weight_kind(small)])
    assert found.decoder.final_norm.weight.dtype == torch.float32


def test_only_our_own_layout_keeps_them(small, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=rf"{weight_kind(small)} weights .* layout='gpt2'"):
        save(small, tmp_path / "theirs", layout="gpt2")


def change(folder: Path, tensors=None, **values) -> None:
    """Change a saved model, with hashes that fit."""
    plain = json.loads((folder / "config.json").read_text()) | values
    if tensors is not None:
        state = load_file(folder / "model.safetensors")
        tensors(state)
        save_file(state, folder / "model.safetensors")
        plain["files"]["model.safetensors"] = sha256(folder / "model.safetensors")
    plain["sha256"] = own._digest(plain)
    (folder / "config.json").write_text(json.dumps(plain))


@pytest.mark.plain
@pytest.mark.parametrize(
    ("tensors", "values", "sentence"),
    [
        (lambda s: s.pop("embedding.weight.scale"), {}, "lacks embedding.weight.scale"),
        (
            lambda s: s.update({"embedding.weight": s["embedding.weight"].float()}),
            {},
            "embedding.weight in model.safetensors must be {dtype}",
        ),
        (
            lambda s: s.update({"embedding.weight.scale": torch.ones(7)}),
            {},
            r"has \(211, 48\) and \(7,\)",
        ),
        (
            lambda s: s["embedding.weight.scale"].fill_(torch.nan),
            {},
            "embedding.weight must hold finite numbers",
        ),
        (None, {"weights": "int3"}, "must be int8 or fp8, and of a Transformer; it is 'int3'"),
        (None, {"glassformer": 3}, "is of format 3; this glassformer reads up to 2"),
    ],
)
def test_each_fault_is_named(small, tensors, values, sentence: str, tmp_path: Path) -> None:
    save(small, tmp_path / "saved")
    change(tmp_path / "saved", tensors, **values)
    sentence = sentence.replace("{dtype}", str(KINDS[weight_kind(small)]))
    with pytest.raises(CheckpointError, match=sentence):
        load(tmp_path / "saved")


@pytest.mark.plain
def test_nan_among_floats_of_8_bits_is_found(tmp_path: Path) -> None:
    save(quantize(build(CONFIG).eval(), "fp8"), tmp_path / "saved")

    def spoil(state) -> None:
        state["embedding.weight"].view(torch.uint8)[3, 5] = 0x7F

    change(tmp_path / "saved", spoil)
    with pytest.raises(CheckpointError, match=r"embedding.weight must hold finite numbers"):
        load(tmp_path / "saved")
    assert load(tmp_path / "saved", allow_non_finite=True).embedding.weight[3, 5].isnan()
