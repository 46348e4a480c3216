"""Models that classify: classes in the place of tokens, and the position that they are read at."""

from typing import Any

import pytest
import torch

import glassformer as gf
from glassformer.errors import TraceError

tf = pytest.importorskip("transformers")

LABELS = {0: "sad", 1: "calm", 2: "glad"}
SIZES = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "id2label": LABELS,
}
TEXT = {**SIZES, "vocab_size": 50, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
IMAGE = {**SIZES, "image_size": 16, "patch_size": 8}
SEVERAL = "not those of one position, but of several together"


def make_model(kind: str, config: str, options: dict[str, Any]) -> Any:
    torch.manual_seed(1)
    model = getattr(tf, kind)(getattr(tf, config)(**options)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return model


def watch_model(model: Any, options: dict[str, Any]) -> tuple[gf.Trace, torch.Tensor]:
    if "image_size" in options:
        inputs = {"pixel_values": torch.randn(2, 3, 16, 16)}
    else:
        tokens = torch.tensor([[5, 6, 7, 8, 9], [5, 9, 8, 0, 0]])
        inputs = {"input_ids": tokens, "attention_mask": (tokens > 0).long()}
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        return trace, model(**inputs).logits


MODELS = [
    ("BertForSequenceClassification", "BertConfig", TEXT, (0, 0)),
    ("RobertaForSequenceClassification", "RobertaConfig", TEXT, (0, 0)),
    (
        "LlamaForSequenceClassification",
        "LlamaConfig",
        {**TEXT, "num_key_value_heads": 2},
        (4, 2),
    ),
    ("ViTForImageClassification", "ViTConfig", IMAGE, (0, 0)),
    ("BertForTokenClassification", "BertConfig", TEXT, None),
]


@pytest.mark.parametrize(("kind", "config", "options", "pooled"), MODELS)
def test_classes_are_read_where_the_model_reads_them(
    kind: str, config: str, options: dict[str, Any], pooled: tuple[int, ...] | None
) -> None:
    model = make_model(kind, config, options)
    trace, logits = watch_model(model, options)
    assert trace.residual().require_readout().pooled == pooled
    for i in range(2):
        row = -1 if pooled is None else pooled[i]
        scores = logits[i] if pooled is not None else logits[i, -1]
        assert torch.allclose(trace.logits()[i, row], scores, atol=1e-5)
        lens = gf.logit_lens(trace, sequence=i)
        assert lens.labels[-1][row][0] == LABELS[int(scores.argmax())]
        assert lens.pooled == (None if pooled is None else row)
        for by in ("part", "head"):
            found = gf.attribute(trace, "glad", against="sad", by=by, sequence=i)
            assert found.logit == pytest.approx(float(scores[2] - scores[0]), abs=1e-5)
            assert abs(found.remainder) < 1e-5 and (found.token, found.against) == ("glad", "sad")
            assert not any("reads its classes" in each for each in found.frozen)


def test_another_position_is_said_to_be_one() -> None:
    model = make_model(*MODELS[0][:3])
    trace, _ = watch_model(model, TEXT)
    found = gf.attribute(trace, "calm", position=3)
    assert "the position: the model reads its classes at 0, not here" in found.frozen
    assert "the slopes of the nonlinearity before the classes" in found.frozen


def test_why_names_classes_and_tests_them() -> None:
    model = make_model(*MODELS[0][:3])
    tokens = torch.tensor([[5, 6, 7, 8, 9]])
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        scores = model(tokens).logits[0]
    found = gf.why(trace, "glad", against="calm", position=0, top=3)
    assert (found.token, found.against) == ("glad", "calm")
    assert found.logit == pytest.approx(float(scores[2] - scores[1]), abs=1e-5)
    assert found.verdict is not None
    assert found.verdict.whole == pytest.approx(found.logit, abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "config", "options", "said"),
    [
        ("BeitForImageClassification", "BeitConfig", IMAGE, SEVERAL),
        (
            "ModernBertForSequenceClassification",
            "ModernBertConfig",
            {**TEXT, "classifier_pooling": "mean", "cls_token_id": 1, "sep_token_id": 2},
            SEVERAL,
        ),
    ],
)
def test_a_mean_over_positions_is_refused(
    kind: str, config: str, options: dict[str, Any], said: str
) -> None:
    trace, _ = watch_model(make_model(kind, config, options), options)
    for ask in (gf.logit_lens, lambda trace: gf.attribute(trace, 1)):
        with pytest.raises(TraceError, match=said):
            ask(trace)


def test_an_unknown_class_is_refused() -> None:
    trace, _ = watch_model(make_model(*MODELS[0][:3]), TEXT)
    with pytest.raises(TraceError, match="A class must be one of sad, calm, glad; got 'angry'"):
        gf.attribute(trace, "angry")
    with pytest.raises(TraceError, match="numbered 0 … 2; got 7"):
        gf.attribute(trace, 7)


def test_our_encoder_with_classes() -> None:
    torch.manual_seed(2)
    output = {"classes": ["sad", "glad"], "masked_tokens": False}
    config = gf.Config.from_dict(
        {
            "family": "encoder",
            "vocab_size": 40,
            "dim": 24,
            "n_layers": 2,
            "n_heads": 4,
            "hidden_dim": 40,
            "max_len": 16,
            "output": output,
        }
    )
    model = gf.build(config).eval()
    tokens = torch.tensor([[5, 6, 7]])
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        scores = model.classify(model(tokens))[0]
    assert torch.allclose(trace.logits()[0, 0], scores, atol=1e-6)
    found = gf.attribute(trace, "glad", against="sad")
    assert found.logit == pytest.approx(float(scores[1] - scores[0]), abs=1e-6)
    assert abs(found.remainder) < 1e-6
