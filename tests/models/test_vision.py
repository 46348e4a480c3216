"""Vision encoders: transformers' outputs, files, watching, and what is refused."""

import json
from pathlib import Path

import pytest
import torch

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.errors import CheckpointError, ConfigError, ShapeError
from glassformer.layers import PatchEmbedding
from glassformer.models import Config, Patches, VisionEncoder, build
from glassformer.models.shapes import shapes

SIZES = {
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "image_size": 14,  # two patches of 6, and 2 pixels that no patch covers
    "patch_size": 6,
    "num_channels": 2,
}


def images(B: int = 3) -> torch.Tensor:
    return torch.randn(B, 2, 14, 14, generator=torch.Generator().manual_seed(1))


def theirs(kind: str, **changes):
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(**{**SIZES, "num_labels": 4, **changes})
    model = getattr(transformers, kind)(config).eval()
    generator = torch.Generator().manual_seed(0)
    for path, part in model.named_parameters():
        part.data.normal_(std=0.3, generator=generator)
        if "norm" in path and path.endswith("weight"):
            part.data += 1
    return model


def config(**changes) -> Config:
    plain = {"vocab_size": 1, "dim": 12, "n_layers": 2, "n_heads": 3, "max_len": 5}
    plain |= {"patches": Patches(image_size=14, patch_size=6, n_channels=2)}
    return Config(**({"family": "vision"} | plain | changes))


@pytest.mark.parametrize("kind", ["ViTModel", "ViTForImageClassification"])
def test_outputs_are_theirs_in_both_directions(kind: str, tmp_path: Path) -> None:
    foreign = theirs(kind)
    foreign.save_pretrained(tmp_path / "theirs")
    ours = gf.load(tmp_path / "theirs")
    assert isinstance(ours, VisionEncoder)
    gf.save(ours, tmp_path / "back", layout="huggingface")
    assert json.loads((tmp_path / "back" / "config.json").read_text())["model_type"] == "vit"
    again = type(foreign).from_pretrained(tmp_path / "back").eval()
    x = images()
    with torch.no_grad():
        hidden = ours(x)
        for each in (foreign, again):
            if kind == "ViTModel":
                assert_close(hidden, each(x).last_hidden_state, 1e-5)
            else:
                assert_close(ours.classify(hidden), each(x).logits, 1e-5)
    gf.save(ours, tmp_path / "own")
    assert_same(gf.load(tmp_path / "own")(x), hidden)


def test_patches_are_rows_of_squares_behind_the_class_vector() -> None:
    layer = PatchEmbedding(5, image_size=6, patch_size=3, n_channels=1).double()
    image = torch.arange(36.0).double().reshape(1, 1, 6, 6)
    out = layer(image)
    weight = layer.projection.weight.flatten(1)
    squares = [image[0, 0, a : a + 3, b : b + 3].flatten() for a in (0, 3) for b in (0, 3)]
    expected = torch.stack([weight @ square + layer.projection.bias for square in squares])
    assert_close(out[0, 1:], expected, 1e-10)
    assert_same(out[0, :1], layer.class_vector)


def test_watching_shows_which_patches_are_read() -> None:
    model, x = build(config()).eval(), images()
    with torch.no_grad():
        before = model(x)
        with gf.watch(model, residual=True) as trace:
            after = model(x)
    assert_same(after, before)
    site = trace["encoder.1.self"]
    assert site.shape == (3, 3, 5, 5)
    assert_close(site.weights(head=2, sequence=1).sum(-1), torch.ones(5), 1e-6)


def test_it_learns_and_is_adapted() -> None:
    model = gf.add_lora(build(config()), rank=2)
    model(images()).sum().backward()
    assert model.encoder.blocks[0].attention.qkv.lora_b.grad.abs().max() > 0


@pytest.mark.plain
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"max_len": 6}, r"has max_len=5, .* got max_len=6, vocab_size=1"),
        ({"vocab_size": 7}, r"vocab_size=1; got max_len=5, vocab_size=7"),
        ({"patches": None}, r"patches belong to family='vision'.*patches=None"),
        ({"window": 3}, r"window is for models of text; got window=3 for family='vision'"),
    ],
)
def test_configs_that_cannot_be(changes: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        config(**changes)


@pytest.mark.plain
def test_refusals(tmp_path: Path) -> None:
    model = build(config())
    with pytest.raises(ConfigError, match=r"patch_size=9, image_size=8"):
        Patches(image_size=8, patch_size=9)
    with pytest.raises(ShapeError, match=r"\(B, 2, 14, 14\); got \(1, 3, 14, 14\)"):
        model(torch.zeros(1, 3, 14, 14))
    with pytest.raises(ConfigError, match=r"has no classes to tell apart"):
        model.classify(model(images()))
    with pytest.raises(ConfigError, match=r"VisionEncoder needs family='vision'; got 'encoder'"):
        VisionEncoder(config(family="encoder", patches=None))
    with pytest.raises(ConfigError, match=r"this one reads images"):
        shapes(config())
    with pytest.raises(ConfigError, match=r"can be quantized; got VisionEncoder"):
        gf.quantize(model)
    theirs("ViTModel", qkv_bias=False).save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"with qkv_bias=False is not known"):
        gf.load(tmp_path)
