"""LoRA: the formula, what is trained, merging, files, and what refuses unmerged adapters."""

import copy
from pathlib import Path

import pytest
import torch

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.errors import CheckpointError, ConfigError
from glassformer.generation import generate_tokens
from glassformer.models import Config, Positions, build, remove_lora, unmerge_lora
from glassformer.models.decoder_weights import refusal
from glassformer.models.lora import list_adapters

SIZES = {"vocab_size": 13, "dim": 12, "n_layers": 2, "n_heads": 3, "max_len": 16, "gated": True}


def model(**changes) -> torch.nn.Module:
    torch.manual_seed(0)
    config = Config(family="decoder", positions=Positions(kind="rotary"), **(SIZES | changes))
    built = build(config).double().eval()
    for parameter in built.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.5)
    return built


def adapted(**options) -> torch.nn.Module:
    found = gf.add_lora(
        model(), **({"rank": 2, "alpha": 3.0, "targets": ["qkv", "down"]} | options)
    )
    for layer in list_adapters(found).values():
        torch.nn.init.normal_(layer.lora_b, std=0.3)
    return found


X = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])


def test_new_adapters_change_nothing_and_are_all_that_is_trained() -> None:
    before, after = model(), gf.add_lora(model(), rank=2, targets=["qkv", "out"])
    assert_same(after(X), before(X))
    trained = {name for name, p in after.named_parameters() if p.requires_grad}
    paths = [f"decoder.blocks.{i}.attention.{t}" for i in (0, 1) for t in ("qkv", "out")]
    assert trained == {f"{path}.lora_{x}" for path in paths for x in "ab"}
    after(X).sum().backward()
    grads = {name for name, p in after.named_parameters() if p.grad is not None}
    assert grads == trained


def test_a_layer_is_its_formula() -> None:
    layer = adapted().decoder.blocks[1].attention.qkv
    x = torch.randn(4, 12).double()
    weight = layer.weight + 3.0 / 2 * layer.lora_b @ layer.lora_a
    assert_close(layer(x), x @ weight.T + layer.bias, 1e-12)


def test_it_is_pefts() -> None:
    peft = pytest.importorskip("peft")
    ours = adapted()
    settings = peft.LoraConfig(r=2, lora_alpha=3, target_modules=["qkv", "down"])
    theirs = peft.inject_adapter_in_model(settings, copy.deepcopy(model()))
    for path, layer in list_adapters(ours).items():
        other = theirs.get_submodule(path)
        other.lora_A["default"].weight.data = layer.lora_a.data
        other.lora_B["default"].weight.data = layer.lora_b.data
    assert_close(ours(X), theirs(X), 1e-10)
    assert (ours(X) - model()(X)).abs().max() > 0.1
    for layer in theirs.modules():
        if isinstance(layer, peft.tuners.lora.Linear):
            layer.merge()
    assert_close(gf.merge_lora(ours)(X), theirs(X), 1e-10)


def test_merged_and_unmerged_models_are_the_same() -> None:
    built = adapted()
    expected = built(X)
    gf.merge_lora(built, keep=True)
    merged = built.decoder.blocks[0].attention.qkv.weight.clone()
    assert_close(built(X), expected, 1e-10)
    gf.merge_lora(built, keep=True)  # once is enough
    assert_same(built.decoder.blocks[0].attention.qkv.weight, merged)
    unmerge_lora(built)
    assert_close(built(X), expected, 1e-10)
    gf.merge_lora(built, keep=True)
    assert_close(remove_lora(built)(X), model()(X), 1e-10)
    assert all(p.requires_grad for p in built.parameters())


def test_decoding_goes_by_the_modules_until_they_are_merged() -> None:
    built = adapted().float()
    assert refusal(built) == "decoder.blocks.0.attention.qkv has a LoRA adapter"
    written = generate_tokens(built, [[1, 2, 3]], max_new_tokens=8)
    row = torch.tensor([[1, 2, 3]])
    for _ in range(8):
        row = torch.cat([row, built(row)[:, -1:].argmax(-1)], 1)
    assert written[0] == row[0, 3:].tolist()
    gf.merge_lora(built)
    assert refusal(built) is None
    assert generate_tokens(built, [[1, 2, 3]], max_new_tokens=8) == written


def test_adapters_are_saved_apart(tmp_path: Path) -> None:
    built = adapted(dropout=0.1)
    path = tmp_path / "adapter.safetensors"
    gf.save_lora(built, path)
    again = gf.load_lora(model(), path)
    assert_same(again(X), built(X))
    assert path.stat().st_size < 30_000
    assert {n for n, p in again.named_parameters() if p.requires_grad} == {
        n for n, p in built.named_parameters() if p.requires_grad
    }
    gf.save_lora(again, path)  # replaces its own kind of file


def test_adapters_on_int8_weights_learn() -> None:
    built = gf.add_lora(gf.quantize(model().float()), rank=2)
    built(X).sum().backward()
    layer = built.decoder.blocks[0].attention.qkv
    assert layer.lora_b.grad.abs().max() > 0
    with pytest.raises(ConfigError, match=r"merged into int8 weights; decoder.blocks.0"):
        gf.merge_lora(built)


@pytest.mark.plain
def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"linear layers down, out, qkv, up; got 'q_proj'"):
        gf.add_lora(model(), targets=["q_proj"])
    with pytest.raises(ConfigError, match=r"linear layers .*; got \(\)"):
        gf.add_lora(model(), targets=[])
    with pytest.raises(ConfigError, match=r"lora.rank must be at least 1; got 0"):
        gf.add_lora(model(), rank=0)
    with pytest.raises(ConfigError, match=r"has LoRA adapters already"):
        gf.add_lora(adapted())
    for call in (gf.merge_lora, unmerge_lora, remove_lora):
        with pytest.raises(ConfigError, match=r"has no LoRA adapters"):
            call(model())
    with pytest.raises(ConfigError, match=r"merged before weights are quantized"):
        gf.quantize(adapted())
    with pytest.raises(CheckpointError, match=r"cannot be saved whole"):
        gf.save(adapted(), tmp_path / "model")


@pytest.mark.plain
def test_files_that_hold_no_fitting_adapters(tmp_path: Path) -> None:
    path = tmp_path / "adapter.safetensors"
    gf.save_lora(adapted(), path)
    other = model(n_layers=1)
    with pytest.raises(CheckpointError, match=r"decoder.blocks.1.* does not fit"):
        gf.load_lora(other, path)
    assert not list_adapters(other)
    with pytest.raises(CheckpointError, match=r"cannot be read"):
        gf.load_lora(model(), tmp_path / "nothing.safetensors")
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(CheckpointError, match=r"does not say which adapters"):
        gf.load_lora(model(), path)
    save_file({"a": torch.zeros(1)}, path, metadata={"glassformer.lora": '{"rank": 0}'})
    with pytest.raises(CheckpointError, match=r"describes no adapters: .*rank must be at least 1"):
        gf.load_lora(model(), path)
