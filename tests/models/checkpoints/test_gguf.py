"""GGUF files written here: every quantisation, the permutation undone, tokenizers of both kinds."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from closeness import assert_close
from glassformer.errors import CheckpointError
from glassformer.models.checkpoints import load
from tiny_models import V

gguf = pytest.importorskip("gguf")
pytest.importorskip("transformers")

C, H, K, D, F, N = 64, 4, 2, 16, 96, 2  # widths that fill blocks of 32
KINDS = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"]


def permuted(rows: np.ndarray, n_heads: int) -> np.ndarray:
    """As the converters to GGUF do: the two rows that rotate together, side by side."""
    halves = rows.reshape(n_heads, 2, -1, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def foreign(model_type: str = "llama", **changes):
    import transformers

    fields = {
        "vocab_size": V,
        "hidden_size": C,
        "num_hidden_layers": N,
        "num_attention_heads": H,
        "num_key_value_heads": K,
        "head_dim": D,
        "intermediate_size": F,
        "max_position_embeddings": 32,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
        "rms_norm_eps": 2.0**-17,
        **changes,
    }
    name = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}[model_type]
    config = getattr(transformers, f"{name}Config")(**fields)
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    generator = torch.Generator().manual_seed(3)
    for part in model.parameters():
        part.data.normal_(std=0.2, generator=generator)
    return model


NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "model.layers": "blk",
}


def written(path: Path, model, kind: str = "F32", *, tokens: str = "gpt2", change=None) -> None:
    """A GGUF file of a transformers model; its matrices become what the quantisation keeps."""
    model_type = model.config.model_type
    writer = gguf.GGUFWriter(path, model_type)
    writer.add_block_count(N)
    writer.add_context_length(32)
    writer.add_embedding_length(C)
    writer.add_feed_forward_length(F)
    writer.add_head_count(H)
    writer.add_head_count_kv(K)
    writer.add_key_length(D)
    writer.add_rope_freq_base(model.config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(2.0**-17)
    add_tokenizer(writer, tokens)
    if change is not None:
        change(writer)
    quantised = gguf.GGMLQuantizationType[kind]
    for name, part in model.named_parameters():
        array = part.detach().numpy()
        kept = quantised if array.ndim == 2 else gguf.GGMLQuantizationType.F32
        stored = permuted_by_name(name, array, model_type)
        data = gguf.quantize(stored, kept)
        back = gguf.dequantize(data, kept).reshape(stored.shape)
        part.data = torch.from_numpy(unpermuted_by_name(name, back, model_type).copy())
        writer.add_tensor(short_name(name), data, raw_dtype=kept)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def short_name(name: str) -> str:
    for theirs, short in NAMES.items():
        name = name.replace(theirs, short)
    return name


def permuted_by_name(name: str, array: np.ndarray, model_type: str) -> np.ndarray:
    if model_type != "llama" or not any(f".{x}_proj." in name for x in "qk"):
        return array
    return permuted(array, H if ".q_proj." in name else K)


def unpermuted_by_name(name: str, array: np.ndarray, model_type: str) -> np.ndarray:
    if model_type != "llama" or not any(f".{x}_proj." in name for x in "qk"):
        return array
    heads = H if ".q_proj." in name else K
    pairs = array.reshape(heads, -1, 2, *array.shape[1:])
    return pairs.swapaxes(1, 2).reshape(array.shape)


def add_tokenizer(writer, kind: str) -> None:
    if kind == "gpt2":
        pieces = ["<end>", "a", "b", "c", "Ġ", "ab", "Ġab", *(f"x{i}" for i in range(V - 7))]
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("smollm")
        writer.add_token_merges(["a b", "Ġ ab"])
    else:
        pieces = [
            "<unk>",
            "<s>",
            "</s>",
            "▁",
            "a",
            "b",
            "ab",
            "▁ab",
            *(f"x{i}" for i in range(V - 8)),
        ]
        writer.add_tokenizer_model("llama")
        writer.add_token_scores([-float(i) for i in range(V)])
        writer.add_unk_token_id(0)
        writer.add_bos_token_id(1)
        writer.add_add_bos_token(True)
    writer.add_token_list(pieces)
    control = 1 if kind == "gpt2" else 3
    writer.add_token_types([3 if i < control else 1 for i in range(V)])
    writer.add_eos_token_id(0 if kind == "gpt2" else 2)


def assert_equal_logits(path: Path, model) -> None:
    tokens = torch.randint(0, V, (2, 9), generator=torch.Generator().manual_seed(4))
    with torch.no_grad():
        theirs = model(tokens).logits
        assert theirs.std() > 0.1
        assert_close(load(path)(tokens), theirs, 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_every_quantisation_is_made_whole(kind: str, tmp_path: Path) -> None:
    model = foreign(tie_word_embeddings=True)
    written(tmp_path / "tiny.gguf", model, kind)
    assert_equal_logits(tmp_path / "tiny.gguf", model)


@pytest.mark.parametrize("model_type", ["llama", "qwen2", "qwen3"])
def test_every_kind_of_model(model_type: str, tmp_path: Path) -> None:
    model = foreign(model_type)
    written(tmp_path / "tiny.gguf", model)
    assert_equal_logits(tmp_path / "tiny.gguf", model)


def test_scaled_rotary_positions(tmp_path: Path) -> None:
    linear = {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}
    model = foreign(rope_parameters=linear)

    def say(writer) -> None:
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(2.0)

    written(tmp_path / "tiny.gguf", model, change=say)
    assert_equal_logits(tmp_path / "tiny.gguf", model)


def test_the_bands_of_llama_3_are_recognised(tmp_path: Path) -> None:
    bands = {
        "rope_type": "llama3",
        "factor": 8.0,
        "rope_theta": 500_000.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    model = foreign(rope_parameters=bands)
    frequencies = 500_000.0 ** (-torch.arange(0, D, 2) / D)
    divisors = (frequencies / model.model.rotary_emb.inv_freq).numpy().astype(np.float32)

    def keep(writer) -> None:
        writer.add_tensor("rope_freqs.weight", divisors)

    written(tmp_path / "tiny.gguf", model, change=keep)
    assert load(tmp_path / "tiny.gguf").config.positions.scaling.factor == pytest.approx(8.0)
    assert_equal_logits(tmp_path / "tiny.gguf", model)
    divisors[3] = 1.7
    written(tmp_path / "other.gguf", model, change=keep)
    with pytest.raises(CheckpointError, match=r"must be the scaling of Llama 3"):
        load(tmp_path / "other.gguf")


def test_byte_level_tokenizer(tmp_path: Path) -> None:
    written(tmp_path / "tiny.gguf", foreign())
    model = load(tmp_path / "tiny.gguf")
    assert model.tokenizer.encode("ab abc") == [5, 6, 3]
    assert model.tokenizer.decode([5, 6, 3, 0]) == "ab abc"
    assert model.special.end == (0,)


def test_scored_tokenizer(tmp_path: Path) -> None:
    written(tmp_path / "tiny.gguf", foreign(), tokens="llama")
    model = load(tmp_path / "tiny.gguf")
    assert model.tokenizer.encode("ab aab") == [1, 7, 3, 4, 6]
    assert model.tokenizer.decode([1, 7, 3, 4, 6, 2]) == "ab aab"
    assert model.special.begin == 1


@pytest.mark.plain
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda w: w.add_rope_dimension_count(8),
            r"All 16 numbers of a head must be rotated.* 8\.",
        ),
        (lambda w: w.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE), r"'longrope'"),
        (lambda w: w.add_tensor("more", np.zeros(3, np.float32)), r"has, unexpectedly, more"),
    ],
)
def test_refusals(change, sentence: str, tmp_path: Path) -> None:
    written(tmp_path / "tiny.gguf", foreign(), change=change)
    with pytest.raises(CheckpointError, match=sentence):
        load(tmp_path / "tiny.gguf")


@pytest.mark.plain
def test_other_quantisations_and_kinds_are_named(tmp_path: Path) -> None:
    written(tmp_path / "tiny.gguf", foreign(), "Q5_0")
    with pytest.raises(CheckpointError, match=r"must be of F32, F16.*token_embd.weight.*is Q5_0"):
        load(tmp_path / "tiny.gguf")
    writer = gguf.GGUFWriter(tmp_path / "other.gguf", "mamba")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(CheckpointError, match=r"a model of llama, qwen2, qwen3; .* holds 'mamba'"):
        load(tmp_path / "other.gguf")


def test_truncation_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    written(path, foreign())
    content = path.read_bytes()
    for offset in [0, *random.Random(5).sample(range(len(content) - 32), k=60)]:
        path.write_bytes(content[:offset])
        with pytest.raises(CheckpointError) as caught:
            load(path)
        assert "\n" not in str(caught.value)


@pytest.mark.plain
def test_bytes_that_nobody_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    written(path, foreign())
    content, rng = path.read_bytes(), random.Random(7)
    for offset in rng.sample(range(len(content)), k=60):
        path.write_bytes(content[:offset] + rng.randbytes(32) + content[offset:])
        with pytest.raises(CheckpointError):
            load(path)
    path.write_bytes(content + bytes(32))
    with pytest.raises(CheckpointError, match=r"its data must end at byte \d+, and the file at"):
        load(path)


@pytest.mark.plain
def test_sizes_are_compared_with_the_file(tmp_path: Path) -> None:
    """A billion of anything is refused before room for it is made."""
    path = tmp_path / "tiny.gguf"
    written(path, foreign())
    content = path.read_bytes()
    list_at = content.index(b"tokenizer.ggml.tokens") + len("tokenizer.ggml.tokens") + 8
    for offset, what in ((8, "tensors"), (16, "fields"), (list_at, "tokenizer.ggml.tokens")):
        path.write_bytes(content[:offset] + (2**60).to_bytes(8, "little") + content[offset + 8 :])
        with pytest.raises(CheckpointError, match=rf"announces {2**60} {what}, and has \d+ bytes"):
            load(path)
    name_at = content.index(b"general.architecture") - 8
    path.write_bytes(content[:name_at] + (2**62).to_bytes(8, "little") + content[name_at + 8 :])
    with pytest.raises(CheckpointError, match=rf"a text of {2**62} bytes"):
        load(path)


@pytest.mark.plain
def test_weights_that_are_not_finite(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    written(path, foreign())
    content = bytearray(path.read_bytes())
    content[-36:-32] = b"\0\0\xc0\x7f"
    path.write_bytes(content)
    with pytest.raises(
        CheckpointError, match=r"must hold finite numbers; the saved tensor has nan"
    ):
        load(path)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("field", "add", "sentence"),
    [
        (
            "tokenizer.ggml.eos_token_id",
            lambda w: w.add_eos_token_id(10**6),
            r"eos_token_id in .* must match its tokenizer; it is 1000000",
        ),
        (
            "llama.rope.scaling.type",
            lambda w: w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR),
            r"must have llama.rope.scaling.factor, a number, in its header; it has nothing",
        ),
        (
            "llama.attention.head_count",
            lambda w: w.add_head_count(0),
            r"head_count in .* must be at least 1 .*; it is 0",
        ),
        (
            "llama.block_count",
            lambda w: w.add_block_count(9000),
            r"9000 layers must have at least as many tensors",
        ),
    ],
)
def test_fields_that_do_not_fit(field: str, add, sentence: str, tmp_path: Path) -> None:
    def change(writer) -> None:
        writer.kv_data[0].pop(field, None)
        add(writer)

    written(tmp_path / "tiny.gguf", foreign(), change=change)
    with pytest.raises(CheckpointError, match=sentence):
        load(tmp_path / "tiny.gguf")


@pytest.mark.plain
def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(CheckpointError, match=r"needs the package gguf.*\[gguf\]"):
        load(tmp_path / "tiny.gguf")
