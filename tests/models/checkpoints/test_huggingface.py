"""Every architecture, in both directions: transformers' logits are ours."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.errors import CheckpointError
from glassformer.models import Decoder, EncoderDecoder, build
from glassformer.models.checkpoints import load, load_config, save
from tiny_models import MODELS, V, foreign_class, foreign_outputs, saved

pytest.importorskip("transformers")
every = pytest.mark.parametrize("name", MODELS)
L, S = 11, 9
LENGTHS, SOURCE_LENGTHS = torch.tensor([11, 6, 1]), torch.tensor([4, 9, 7])


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Padded with 1, as the configs say; RoBERTa counts places by it."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(3, V, (3, L), generator=generator)
    source = torch.randint(3, V, (3, S), generator=generator)
    tokens[torch.arange(L) >= LENGTHS[:, None]] = 1
    source[torch.arange(S) >= SOURCE_LENGTHS[:, None]] = 1
    return tokens, source


def our_outputs(model, tokens, source) -> torch.Tensor:
    with torch.no_grad():
        if isinstance(model, Decoder):
            return model(tokens)
        if isinstance(model, EncoderDecoder):
            return model(source, tokens, source_mask=gf.Padding(SOURCE_LENGTHS))
        hidden = model(tokens, mask=gf.Padding(LENGTHS))
        if model.config.output.classes:
            return model.classify(hidden)
        return model.fill(hidden) if model.config.output.masked_tokens else hidden


def assert_equal_outputs(model, foreign) -> None:
    tokens, source = batch()
    both = isinstance(model, EncoderDecoder)
    theirs = foreign_outputs(
        foreign, tokens, LENGTHS, *((source, SOURCE_LENGTHS) if both else (None, None))
    )
    ours = our_outputs(model, tokens, source)
    assert ours.shape == theirs.shape
    if ours.ndim == 3:  # what stands at padded places means nothing
        real = torch.arange(L) < LENGTHS[:, None]
        ours, theirs = ours[real], theirs[real]
    assert theirs.std() > 0.1
    assert_close(ours, theirs, 1e-5)


@every
def test_loaded_outputs_are_theirs(name: str, tmp_path: Path) -> None:
    foreign = saved(name, tmp_path / "theirs")
    assert_equal_outputs(load(tmp_path / "theirs"), foreign)


@every
def test_saved_back_outputs_are_theirs(name: str, tmp_path: Path) -> None:
    foreign = saved(name, tmp_path / "theirs")
    save(load(tmp_path / "theirs"), tmp_path / "back", layout=foreign.config.model_type)
    again, report = foreign_class(name).from_pretrained(tmp_path / "back", output_loading_info=True)
    lost = {key for key in report["missing_keys"] if "pooler." not in key}
    assert not lost and not report["unexpected_keys"] and not report["mismatched_keys"]
    assert_equal_outputs(load(tmp_path / "back"), again.eval())
    assert_equal_outputs(load(tmp_path / "theirs"), again.eval())


@every
def test_the_layout_is_found(name: str, tmp_path: Path) -> None:
    foreign = saved(name, tmp_path / "theirs")
    ours = load(tmp_path / "theirs")
    save(ours, tmp_path / "back", layout="huggingface")
    written = json.loads((tmp_path / "back" / "config.json").read_text())
    kind = foreign.config.model_type
    # The same model under the first name that fits: only their vocabularies tell these apart.
    same = {"roberta": "bert", "xlm-roberta": "bert"}.get(kind, kind)
    assert written["model_type"] == ("llama" if name == "mistral-wide" else same)
    tokens, source = batch()
    assert_same(
        our_outputs(load(tmp_path / "back"), tokens, source), our_outputs(ours, tokens, source)
    )


@pytest.mark.parametrize("name", ["bart", "marian", "t5", "t5-gated"])
def test_the_encoder_alone_is_theirs(name: str, tmp_path: Path) -> None:
    foreign = saved(name, tmp_path)
    _, source = batch()
    real = torch.arange(S) < SOURCE_LENGTHS[:, None]
    with torch.no_grad():
        theirs = foreign.get_encoder()(input_ids=source, attention_mask=real.long())
        ours = load(tmp_path).encode(source, mask=gf.Padding(SOURCE_LENGTHS))
    assert_close(ours[real], theirs.last_hidden_state[real], 1e-5)


@pytest.mark.parametrize("name", ["llama", "bert", "t5"])
def test_shards_are_one_model(name: str, tmp_path: Path) -> None:
    foreign = saved(name, tmp_path, max_shard_size="4KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    assert_equal_outputs(load(tmp_path), foreign)


@pytest.mark.parametrize("name", ["gpt2", "bart", "llama-tied"])
def test_a_bare_model_has_no_prefix(name: str, tmp_path: Path) -> None:
    foreign = saved(name, tmp_path / "whole")
    base = getattr(foreign, foreign.base_model_prefix)
    base.save_pretrained(tmp_path / "bare")
    ours = load(tmp_path / "bare")
    if ours.config.output.bias != load_config(tmp_path / "whole").output.bias:
        foreign.final_logits_bias.zero_()  # what the bare model has not
    assert_equal_outputs(ours, foreign)


def test_an_output_matrix_that_differs_is_not_tied(tmp_path: Path) -> None:
    """As transformers has it, whatever config.json says: T5's version 1.1 is saved that way."""
    saved("t5-gated", tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["lm_head.weight"] = 0.3 * torch.randn(V, 12)
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    ours = load(tmp_path)
    assert not ours.config.output.tied
    assert_equal_outputs(ours, foreign_class("t5-gated").from_pretrained(tmp_path).eval())
    save(ours, tmp_path / "back", layout="t5")
    again = foreign_class("t5-gated").from_pretrained(tmp_path / "back").eval()
    assert_equal_outputs(ours, again)


def test_copies_of_one_tensor_may_be_there_and_must_agree(tmp_path: Path) -> None:
    foreign = saved("bert", tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    copy = tensors["bert.embeddings.word_embeddings.weight"].clone()
    save_file(tensors | {"cls.predictions.decoder.weight": copy}, tmp_path / "model.safetensors")
    assert_equal_outputs(load(tmp_path), foreign)
    copy[3, 2] += 1e-3
    save_file(tensors | {"cls.predictions.decoder.weight": copy}, tmp_path / "model.safetensors")
    with pytest.raises(
        CheckpointError, match=r"word_embeddings.weight and cls.*decoder.weight must"
    ):
        load(tmp_path)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_keep_their_dtype_unless_told(dtype: torch.dtype, tmp_path: Path) -> None:
    saved("llama", tmp_path / "whole").to(dtype).save_pretrained(tmp_path / "half")
    assert load(tmp_path / "half").embedding.weight.dtype == dtype
    assert load(tmp_path / "half", dtype=torch.float64).embedding.weight.dtype == torch.float64
    save(load(tmp_path / "half"), tmp_path / "back", layout="llama")
    assert json.loads((tmp_path / "back" / "config.json").read_text())["dtype"] == str(dtype)[6:]


def test_loaded_models_learn(tmp_path: Path) -> None:
    saved("gpt2", tmp_path)
    model = load(tmp_path)
    assert not model.training
    model(batch()[0]).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_old_names_for_rotary_positions(tmp_path: Path) -> None:
    foreign = saved("llama-tied", tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    rope = values.pop("rope_parameters")
    values["rope_theta"] = rope.pop("rope_theta")
    values["rope_scaling"] = rope
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert_equal_outputs(load(tmp_path), foreign)


@pytest.mark.plain
def test_what_cannot_be_said_in_a_layout_is_named(tmp_path: Path) -> None:
    saved("mistral", tmp_path / "theirs")
    model = load(tmp_path / "theirs")
    with pytest.raises(
        CheckpointError, match=r"A llama model cannot.*window is 4, it would become None"
    ):
        save(model, tmp_path / "back", layout="llama")
    with pytest.raises(CheckpointError, match=r"A t5 model cannot be like this one: family"):
        save(model, tmp_path / "back", layout="t5")
    with pytest.raises(CheckpointError, match=r"layout must be glassformer, huggingface.*'onnx'"):
        save(model, tmp_path / "back", layout="onnx")
    with pytest.raises(CheckpointError, match=r"No architecture known here is a decoder like this"):
        save(build("laptop-decoder"), tmp_path / "back", layout="huggingface")
    assert not (tmp_path / "back").exists()


@pytest.mark.plain
@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("bert", {"model_type": "mamba"}, r"model_type must be one of bert, roberta.*'mamba'"),
        ("bert", {"model_type": None}, r"must be one of bert.*says None"),
        ("bert", {"position_embedding_type": "relative_key"}, r"only with 'absolute'"),
        (
            "bert",
            {"hidden_size": "12"},
            r"hidden_size in config.json .* must be a whole number; it is '12'",
        ),
        (
            "bert",
            {"hidden_size": None},
            r"hidden_size in config.json .* must be a whole number; it is missing",
        ),
        ("bert", {"num_attention_heads": 5}, r"describes no model: dim must be divisible"),
        (
            "bert",
            {"hidden_act": "mish"},
            r"hidden_act in config.json .* must be one of relu, gelu.*'mish'",
        ),
        ("bert", {"layer_norm_eps": "small"}, r"layer_norm_eps.*must be a number; it is 'small'"),
        ("bert-classes", {"id2label": {"a": 1}}, r"id2label.*must name classes by number"),
        ("roberta", {"pad_token_id": 3}, r"roberta model with pad_token_id=3 is not known"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, r"only with False"),
        ("gpt2", {"quantization_config": {}}, r"are quantised"),
        ("gpt2", {"n_layer": 3}, r"lacks transformer.h.2.attn.c_attn.bias.* and 9 more"),
        ("gpt2", {"n_layer": 1}, r"has, unexpectedly, transformer.h.1.attn.* and 9 more"),
        ("gpt2", {"vocab_size": 38}, r"embedding.weight must have shape \(38, 12\).*\(37, 12\)"),
        ("llama", {"num_key_value_heads": 3}, r"k_proj.weight must have 12 rows.*\(8, 24\)"),
        ("llama", {"mlp_bias": True}, r"mlp_bias needs attention_bias"),
        (
            "llama",
            {"rope_parameters": {"rope_type": "longrope"}},
            r"rope_type in .* must be.*'longrope'",
        ),
        (
            "llama",
            {"rope_parameters": {"partial_rotary_factor": 0.5}},
            r"partial_rotary_factor=0.5",
        ),
        (
            "qwen2-window",
            {"layer_types": ["full_attention", "chunked_attention"]},
            r"each of the 2 layers as one of full_attention, sliding_attention; .*chunked",
        ),
        ("bart", {"decoder_ffn_dim": 24}, r"must be equal for glassformer; config.json has 20 and"),
        ("marian", {"share_encoder_decoder_embeddings": False}, r"only with True"),
        (
            "t5",
            {"feed_forward_proj": "gated-relu"},
            r"feed_forward_proj in .* must be.*'gated-relu'",
        ),
    ],
)
def test_refusals(name: str, changes: dict, sentence: str, tmp_path: Path) -> None:
    saved(name, tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(values | changes))
    with pytest.raises(CheckpointError, match=sentence) as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.plain
def test_pickles_are_refused_and_never_opened(tmp_path: Path) -> None:
    saved("gpt2", tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"pytorch_model.bin.*run any code.*convert it once"):
        load(tmp_path)
    (tmp_path / "pytorch_model.bin").unlink()
    with pytest.raises(CheckpointError, match=r"has neither. It holds: config.json, generation"):
        load(tmp_path)


@pytest.mark.plain
def test_a_tensor_in_two_shards(tmp_path: Path) -> None:
    """The index names the first; the second one, which comes later, must not win."""
    saved("llama", tmp_path, max_shard_size="4KB")
    first, *_, last = sorted(tmp_path.glob("*.safetensors"))
    name, tensor = next(iter(load_file(first).items()))
    save_file({**load_file(last), name: tensor + 1}, last)
    sentence = rf"A tensor must lie in one file; {name} is in {first.name} and in {last.name}"
    with pytest.raises(CheckpointError, match=sentence):
        load(tmp_path)


@pytest.mark.plain
@pytest.mark.parametrize("name", ["llama", "gpt2", "bart", "t5", "roberta"])
def test_no_tensor_of_one_row_is_spread(name: str, tmp_path: Path) -> None:
    saved(name, tmp_path)
    path = tmp_path / "model.safetensors"
    whole = load_file(path)
    for each, tensor in whole.items():
        if tensor.ndim == 0 or len(tensor) == 1 or each == "final_logits_bias":
            continue
        save_file({**whole, each: tensor[:1].clone()}, path)
        with pytest.raises(CheckpointError, match=r"shape|rows|must be one and the same"):
            load(tmp_path)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"num_hidden_layers": 10**9}, r"n_layers must be at most 10,000"),
        ({"num_hidden_layers": 5000}, r"5000 layers must have at least as many tensors"),
        ({"num_attention_heads": 0}, r"num_attention_heads in config.json .* at least 1"),
        ({"vocab_size": 10**30}, r"vocab_size in config.json .* below 2³¹"),
        ({"rms_norm_eps": float("nan")}, r"rms_norm_eps in config.json .* a finite number"),
        ({"attention_bias": "yes"}, r"attention_bias in config.json .* must be true or false"),
        ({"rope_parameters": [1]}, r"rope_parameters in config.json .* must be a table"),
        ({"eos_token_id": [2, 10**6]}, r"must be below vocab_size=37; .* names 1000000"),
        ({"model_type": ["llama"]}, r"model_type must be one of"),
    ],
)
def test_values_that_no_config_has(changes: dict, sentence: str, tmp_path: Path) -> None:
    saved("llama", tmp_path)
    (tmp_path / "generation_config.json").unlink()
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(CheckpointError, match=sentence):
        load(tmp_path)


@pytest.mark.plain
def test_weights_that_are_not_finite(tmp_path: Path) -> None:
    saved("gpt2", tmp_path)
    path = tmp_path / "model.safetensors"
    whole = load_file(path)
    whole["transformer.h.1.mlp.c_fc.weight"][3, 2] = float("nan")
    save_file(whole, path)
    with pytest.raises(CheckpointError, match=r"blocks.1.feed_forward.up.weight must hold finite"):
        load(tmp_path)
    assert load(tmp_path, allow_non_finite=True)


@pytest.mark.plain
def test_shards_that_do_not_fit_their_index(tmp_path: Path) -> None:
    saved("llama", tmp_path, max_shard_size="4KB")
    index = tmp_path / "model.safetensors.index.json"
    first, second, *_ = sorted(tmp_path.glob("*.safetensors"))
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    with pytest.raises(CheckpointError, match=rf"must lie in one file; .*{first.name}"):
        load(tmp_path)
    first.unlink()
    with pytest.raises(CheckpointError, match=rf"lists {first.name}, which is not there"):
        load(tmp_path)
    first.write_bytes(content)
    index.write_text(index.read_text().replace(first.name, f"../{first.name}"))
    with pytest.raises(CheckpointError, match=r"must name files beside it; it names '../model"):
        load(tmp_path)
    index.write_text('{"metadata": {}}')
    with pytest.raises(CheckpointError, match=r"must have a weight_map; it has none"):
        load(tmp_path)


@pytest.mark.plain
def test_quantised_tensors_are_refused(tmp_path: Path) -> None:
    saved("gpt2", tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["transformer.wte.weight"] = tensors["transformer.wte.weight"].to(torch.int8)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(
        CheckpointError, match=r"wte.weight.*must be of floating point; it is torch.int8"
    ):
        load(tmp_path)
