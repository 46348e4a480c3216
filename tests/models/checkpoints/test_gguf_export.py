"""GGUF files that we write, read by ggml's own package and by transformers."""

from pathlib import Path

import pytest
import torch

import glassformer as gf
from closeness import assert_close
from glassformer.errors import CheckpointError
from glassformer.functional.positions.rotary_scalings import BandedScaling, YaRNScaling
from glassformer.models import Config, Norms, Positions, build
from glassformer.models.checkpoints import load, load_config, save
from tiny_models import MAX_LEN, V, saved

gguf = pytest.importorskip("gguf")
transformers = pytest.importorskip("transformers")


def small(**changes) -> Config:
    fields = {
        "family": "decoder",
        "vocab_size": V,
        "dim": 12,
        "n_layers": 2,
        "n_heads": 3,
        "head_dim": 8,
        "hidden_dim": 20,
        "max_len": MAX_LEN,
        "activation": "silu",
        "gated": True,
        "biases": "none",
        "positions": Positions(kind="rotary"),
        "norms": Norms(kind="rms"),
    }
    return Config(**(fields | changes))


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3"])
def test_the_header_as_ggml_reads_it(name: str, tmp_path: Path) -> None:
    saved(name, tmp_path / "theirs")
    save(load(tmp_path / "theirs", dtype=torch.float16), tmp_path / "tiny.gguf", layout="gguf")
    reader = gguf.GGUFReader(tmp_path / "tiny.gguf")
    values = {key: field.contents() for key, field in reader.fields.items()}
    assert values["GGUF.version"] == 3
    assert values["general.architecture"] == name
    assert values["general.file_type"] == gguf.LlamaFileType.MOSTLY_F16
    assert values[f"{name}.block_count"] == 2
    assert values[f"{name}.attention.head_count"] == 6
    assert values[f"{name}.attention.head_count_kv"] == 2
    assert values[f"{name}.embedding_length"] == 24
    assert values[f"{name}.context_length"] == MAX_LEN
    head_dim = 6 if name == "qwen3" else 4
    for key in ("attention.key_length", "attention.value_length", "rope.dimension_count"):
        assert values[f"{name}.{key}"] == head_dim
    assert values[f"{name}.rope.freq_base"] == pytest.approx(10000.0)
    assert values[f"{name}.attention.layer_norm_rms_epsilon"] == pytest.approx(1e-6)
    kinds = {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}
    assert kinds["blk.1.attn_q.weight"] == "F16"
    assert kinds["blk.1.attn_norm.weight"] == kinds["output_norm.weight"] == "F32"
    known = gguf.get_tensor_name_map(gguf.MODEL_ARCH[name.upper()], 2)
    assert all(known.get_name(each.rsplit(".", 1)[0]) for each in kinds)


def test_rows_that_rotate_together_lie_side_by_side(tmp_path: Path) -> None:
    """Llama's queries and keys are permuted; Qwen's are not."""
    for name, is_permuted in (("llama", True), ("qwen3", False)):
        foreign = saved(name, tmp_path / name)
        save(load(tmp_path / name), tmp_path / f"{name}.gguf", layout="gguf")
        tensors = {t.name: t.data for t in gguf.GGUFReader(tmp_path / f"{name}.gguf").tensors}
        attention = foreign.model.layers[1].self_attn
        for letter, heads in (("q", 6), ("k", 2)):
            rows = getattr(attention, f"{letter}_proj").weight.detach()
            half = len(rows) // heads // 2
            order = [
                head * 2 * half + i + side * half
                for head in range(heads)
                for i in range(half)
                for side in (0, 1)
            ]
            expected = rows[order] if is_permuted else rows
            assert torch.equal(torch.tensor(tensors[f"blk.1.attn_{letter}.weight"]), expected)
        value = torch.tensor(tensors["blk.1.attn_v.weight"])
        assert torch.equal(value, attention.v_proj.weight)


def test_the_included_writer_as_transformers_reads_it(tmp_path: Path) -> None:
    """The model, the tokenizer and what it writes, through a reader that is not ours."""
    model = gf.load("writer")
    save(model, tmp_path / "writer.gguf", layout="gguf")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="writer.gguf")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path, gguf_file="writer.gguf")
    text = "Mrs. Weston smiled, and said: 'I am 21 — not  22.'"
    ids = model.tokenizer.encode(text)
    assert tokenizer(text)["input_ids"] == ids
    tokens = torch.tensor([ids])
    with torch.no_grad():
        assert_close(model(tokens), theirs.eval()(tokens).logits, 1e-4)  # logits reach 16
        assert torch.equal(load(tmp_path / "writer.gguf")(tokens), model(tokens))


@pytest.mark.parametrize(
    "scaling",
    [
        YaRNScaling(3.3, original_len=8),
        BandedScaling(8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_len=8192),
        BandedScaling(3.3, low_freq_factor=1.0, high_freq_factor=4.0, original_len=8192),
    ],
)
def test_scaled_rotary_positions_come_back(scaling, tmp_path: Path) -> None:
    config = small(positions=Positions(kind="rotary", base=500_000.0, scaling=scaling))
    save(build(config), tmp_path / "tiny.gguf", layout="gguf")
    assert load_config(tmp_path / "tiny.gguf") == config


@pytest.mark.plain
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"biases": "qkv", "norms": Norms(kind="rms", heads=True)}, r"qwen3.*'qkv', and qwen3 has"),
        ({"softcap": 3.0}, r"softcap is 3.0, it would become None"),
        (
            {
                "positions": Positions(
                    kind="rotary", scaling=YaRNScaling(2.0, original_len=8, mscale=1)
                )
            },
            r"positions.scaling.mscale is 1.*, it would become None",
        ),
    ],
)
def test_what_a_header_cannot_say_is_named(changes, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=sentence):
        save(build(small(**changes)), tmp_path / "tiny.gguf", layout="gguf")
    assert not list(tmp_path.iterdir())


@pytest.mark.plain
def test_names_dtypes_and_what_is_replaced(tmp_path: Path) -> None:
    model = build(small())
    with pytest.raises(CheckpointError, match=r"must end in \.gguf; got 'tiny'"):
        save(model, tmp_path / "tiny", layout="gguf")
    with pytest.raises(CheckpointError, match=r"this model's weights are float64"):
        save(build(small()).double(), tmp_path / "tiny.gguf", layout="gguf")
    path = tmp_path / "tiny.gguf"
    path.write_text("not a model")
    with pytest.raises(CheckpointError, match=r"exists already"):
        save(model, path, layout="gguf")
    with pytest.raises(CheckpointError, match=r"exists and glassformer did not write it"):
        save(model, path, layout="gguf", overwrite=True)
    assert path.read_text() == "not a model"
    path.unlink()
    save(model, path, layout="gguf")
    save(model, path, layout="gguf", overwrite=True)
    assert [each.name for each in tmp_path.iterdir()] == ["tiny.gguf"]


@pytest.mark.plain
def test_an_lstm_is_refused(tmp_path: Path) -> None:
    from glassformer.models.baselines import RecurrentConfig

    model = build(RecurrentConfig(family="lstm", vocab_size=V, dim=8, n_layers=1))
    with pytest.raises(CheckpointError, match=r"this model is an LSTM"):
        save(model, tmp_path / "tiny.gguf", layout="gguf")
