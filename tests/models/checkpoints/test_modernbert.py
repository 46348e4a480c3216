"""ModernBERT's checkpoints: windows, lengths and padding of many kinds, older configs, refusals."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import glassformer as gf
from closeness import assert_close, assert_zero
from glassformer.errors import CheckpointError
from glassformer.functional.positions.rotary_scalings import LinearScaling
from glassformer.models.checkpoints import load, load_config, save
from tiny_models import MODELS, V, attention_mask, foreign_class, saved, tiny

pytest.importorskip("transformers")
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}


def make_foreign(folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> torch.nn.Module:
    config_class, fields, model_class = MODELS["modernbert"]
    monkeypatch.setitem(MODELS, "modernbert", (config_class, {**fields, **changes}, model_class))
    return saved("modernbert", folder)


def draw_batch(lengths: list[int]) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(lengths))
    tokens = torch.randint(3, V, (len(lengths), max(lengths)), generator=generator)
    tokens[attention_mask(torch.tensor(lengths), max(lengths)) == 0] = 1
    return tokens


def assert_equal_logits(ours: Any, foreign: torch.nn.Module, lengths: list[int]) -> None:
    tokens, real = draw_batch(lengths), attention_mask(torch.tensor(lengths), max(lengths))
    with torch.no_grad():
        theirs = foreign(input_ids=tokens, attention_mask=real).logits
        logits = ours.fill(ours(tokens, mask=gf.Padding(torch.tensor(lengths))))
    assert theirs[real == 1].std() > 0.1
    assert_close(logits[real == 1], theirs[real == 1], 2e-5)


@pytest.mark.parametrize("local_attention", [1, 2, 5, 8, 13, 128])
def test_windows_of_any_size(
    local_attention: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the odd ones, which transformers halves downwards, and texts shorter than the window."""
    foreign = make_foreign(tmp_path, monkeypatch, local_attention=local_attention)
    ours = load(tmp_path)
    assert ours.config.window == 2 * (local_attention // 2) + 1
    for lengths in ([23, 11, 1], [17], [2, 24, 9, 3], [1]):
        assert_equal_logits(ours, foreign, lengths)


def test_a_longer_text_than_the_config_has_places_for(tmp_path: Path) -> None:
    foreign = saved("modernbert", tmp_path)
    assert_equal_logits(load(tmp_path), foreign, [61, 40])


def test_what_is_loaded(tmp_path: Path) -> None:
    saved("modernbert", tmp_path)
    config = load_config(tmp_path)
    assert (config.window, config.global_layers) == (7, (0, 3))
    assert (config.positions.base, config.positions.local_base) == (160_000.0, 10_000.0)
    assert not config.norms.first and config.norms.embedding and config.norms.final
    assert config.gated and config.biases == "none" and not config.norms.bias
    assert config.output.masked_tokens and not config.output.head_bias


def test_watching_theirs_and_ours_shows_the_same_windows(tmp_path: Path) -> None:
    foreign = saved("modernbert", tmp_path)
    ours, lengths = load(tmp_path), torch.tensor([13, 8])
    assert foreign.config._attn_implementation == "sdpa"
    tokens, real = draw_batch([13, 8]), attention_mask(lengths, 13)
    with torch.no_grad():
        alone = foreign(input_ids=tokens, attention_mask=real).logits
        with gf.watch(foreign) as theirs:
            seen = foreign(input_ids=tokens, attention_mask=real).logits
        with gf.watch(ours) as mine:
            ours(tokens, mask=gf.Padding(lengths))
    assert torch.equal(alone, seen)
    i = torch.arange(13)
    near = (i[:, None] - i).abs() <= 3
    assert theirs.names == mine.names == [f"encoder.{n}.self" for n in range(4)]
    for layer, (a, b) in enumerate(zip(theirs, mine, strict=True)):
        for sequence, length in enumerate(lengths.tolist()):
            hidden = (
                ~near[:length] if layer in (1, 2) else torch.zeros(length, 13, dtype=torch.bool)
            )
            hidden = hidden | (i >= length)
            found = [site.weights(sequence=sequence)[:, :length] for site in (a, b)]
            assert_close(*found, 1e-5)
            for weights in found:
                assert (weights[:, ~hidden] > 0).all()
                if hidden.any():
                    assert_zero(weights[:, hidden])


def test_older_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the first published configs have them: no layer_types, no rope_parameters."""
    foreign = make_foreign(
        tmp_path,
        monkeypatch,
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": 300.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 30.0},
        },
    )
    path = tmp_path / "config.json"
    values = json.loads(path.read_text())
    del values["rope_parameters"], values["layer_types"]
    values |= {"global_rope_theta": 300.0, "local_rope_theta": 30.0}
    values |= {"global_attn_every_n_layers": 3}
    path.write_text(json.dumps(values))
    assert_equal_logits(load(tmp_path), foreign, [19, 7])
    again = foreign_class("modernbert").from_pretrained(tmp_path).eval()
    assert_equal_logits(load(tmp_path), again, [19, 7])
    path.write_text(json.dumps(values | {"local_rope_theta": None}))
    positions = load_config(tmp_path).positions
    assert (positions.base, positions.local_base) == (300.0, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_activation": "silu", "classifier_activation": "silu"},
        {"rope_parameters": {"full_attention": LINEAR, "sliding_attention": LINEAR}},
        {"attention_bias": True},
        {"global_attn_every_n_layers": 1},
        {"global_attn_every_n_layers": 9},
    ],
)
def test_variants_in_both_directions(
    changes: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = make_foreign(tmp_path / "theirs", monkeypatch, **changes)
    ours = load(tmp_path / "theirs")
    assert_equal_logits(ours, foreign, [15, 4])
    save(ours, tmp_path / "back", layout="huggingface")
    assert_equal_logits(
        ours, foreign_class("modernbert").from_pretrained(tmp_path / "back").eval(), [15, 4]
    )
    assert load_config(tmp_path / "back") == ours.config


def test_one_of_ours_becomes_theirs(tmp_path: Path) -> None:
    """Built here, with neither tokenizer nor special tokens."""
    saved("modernbert-biases", tmp_path / "theirs")
    config = load_config(tmp_path / "theirs")
    assert config.positions.scaling == LinearScaling(2.0)
    model = gf.build(config.replace(window=5, global_layers=(1, 2))).eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.3)
    save(model, tmp_path / "new", layout="huggingface")
    foreign = foreign_class("modernbert").from_pretrained(tmp_path / "new").eval()
    assert foreign.config.local_attention == 4
    assert_equal_logits(model, foreign, [18, 5])


def test_a_folder_of_sentence_transformers(tmp_path: Path) -> None:
    foreign = tiny("modernbert-bare")
    foreign.save_pretrained(tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    ours, lengths = load(tmp_path), torch.tensor([12, 5])
    with torch.no_grad():
        mask = attention_mask(lengths, 12)
        theirs = foreign(input_ids=draw_batch([12, 5]), attention_mask=mask).last_hidden_state[:, 0]
        vectors = ours.embed(draw_batch([12, 5]), lengths=lengths)
    assert_close(vectors, theirs / theirs.norm(dim=-1, keepdim=True), 1e-5)


def test_the_output_matrix_may_be_there_and_must_be_the_embedding(tmp_path: Path) -> None:
    foreign = saved("modernbert", tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    copy = tensors["model.embeddings.tok_embeddings.weight"].clone()
    save_file(tensors | {"decoder.weight": copy}, path)
    assert_equal_logits(load(tmp_path), foreign, [9])
    copy[3, 2] += 1e-3
    save_file(tensors | {"decoder.weight": copy}, path)
    with pytest.raises(CheckpointError, match=r"tok_embeddings.weight and decoder.weight must be"):
        load(tmp_path)


@pytest.mark.plain
def test_what_cannot_be_said_in_the_layout_is_named(tmp_path: Path) -> None:
    saved("modernbert", tmp_path / "theirs")
    model = load(tmp_path / "theirs")
    with pytest.raises(CheckpointError, match=r"A bert model cannot be like this one: gated is"):
        save(model, tmp_path / "back", layout="bert")
    with pytest.raises(CheckpointError, match=r"A modernbert model cannot.*norms.place is 'post'"):
        save(gf.build("bert-base", device="meta"), tmp_path / "back", layout="modernbert")
    assert not (tmp_path / "back").exists()


@pytest.mark.plain
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"tie_word_embeddings": False}, r"tie_word_embeddings=False is not known"),
        ({"decoder_bias": False}, r"modernbert model with decoder_bias=False is not known"),
        (
            {"hidden_activation": "silu"},
            r"and classifier_activation must be equal .* has silu and gelu",
        ),
        (
            {"hidden_activation": "silu", "classifier_activation": None},
            r"and classifier_activation must be equal .* has silu and gelu",
        ),
        ({"classifier_bias": True}, r"norm_bias and classifier_bias must be .* False and True"),
        ({"mlp_bias": True}, r"A modernbert model with mlp_bias needs attention_bias"),
        ({"local_attention": -1}, r"local_attention in .* must be at least 0 .*it is -1"),
        ({"layer_types": ["full_attention"]}, r"each of the 4 layers as one of full_attention, sl"),
        ({"layer_types": [["full_attention"]] * 4}, r"layer_types in config.json must name each"),
        (
            {"layer_types": None, "global_attn_every_n_layers": 0},
            r"global_attn_every_n_layers in config.json .* at least 1",
        ),
        (
            {"rope_parameters": {"full_attention": LINEAR}},
            r"must be the same in all layers .* has LinearScaling\(factor=2.0\) in full_attention",
        ),
        ({"rope_parameters": LINEAR}, r"must be a table for each of full_attention, sliding_atten"),
        ({"rope_parameters": {"full_attention": 3}}, r"full_attention in .* must be a table; .*3"),
        ({"hidden_activation": "mish"}, r"hidden_activation in config.json .* must be one of"),
    ],
)
def test_refusals(changes: dict, sentence: str, tmp_path: Path) -> None:
    saved("modernbert", tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(CheckpointError, match=sentence) as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.plain
@pytest.mark.parametrize("kind", ["SequenceClassification", "TokenClassification"])
def test_a_classifier_is_refused(kind: str, tmp_path: Path, monkeypatch) -> None:
    config_class, fields, _ = MODELS["modernbert"]
    monkeypatch.setitem(MODELS, "modernbert", (config_class, fields, f"ModernBertFor{kind}"))
    foreign = saved("modernbert", tmp_path / "whole")
    with pytest.raises(CheckpointError, match=r"modernbert model with a classifier is not known"):
        load(tmp_path / "whole")
    foreign.model.save_pretrained(tmp_path / "bare")  # as the sentence says
    assert not load(tmp_path / "bare").config.output.masked_tokens
