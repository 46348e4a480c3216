"""BERT (Devlin et al. 2019) and RoBERTa (Liu et al. 2019): encoders that fill gaps."""

from typing import Any

from glassformer.errors import CheckpointError
from glassformer.models.checkpoints.architectures.architecture import (
    FOREIGN_ACTIVATIONS,
    Architecture,
    Foreign,
)
from glassformer.models.checkpoints.names import Columns
from glassformer.models.config import Config, Dropout, Norms, Output, Positions
from glassformer.settings import quote


def _blocks(prefix: str) -> Columns:
    ours, theirs = "encoder.blocks.{i}.", prefix + "encoder.layer.{i}."
    return (
        (ours + "attention.qkv.{x}", theirs + "attention.self.[query|key|value].{x}"),
        (ours + "attention.out.{x}", theirs + "attention.output.dense.{x}"),
        (ours + "attention_norm.{x}", theirs + "attention.output.LayerNorm.{x}"),
        (ours + "feed_forward.up.{x}", theirs + "intermediate.dense.{x}"),
        (ours + "feed_forward.down.{x}", theirs + "output.dense.{x}"),
        (ours + "feed_forward_norm.{x}", theirs + "output.LayerNorm.{x}"),
        ("token_types.weight", prefix + "embeddings.token_type_embeddings.weight"),
        ("encoder.embedding_norm.{x}", prefix + "embeddings.LayerNorm.{x}"),
    )


BERT_NAMES: Columns = (
    (
        "embedding.weight",
        "bert.embeddings.word_embeddings.weight = cls.predictions.decoder.weight",
    ),
    ("encoder.positions.weight", "bert.embeddings.position_embeddings.weight"),
    *_blocks("bert."),
    ("head.dense.{x}", "cls.predictions.transform.dense.{x}"),
    ("head.norm.{x}", "cls.predictions.transform.LayerNorm.{x}"),
    ("head.bias", "cls.predictions.bias = cls.predictions.decoder.bias"),
    ("classifier.dense.{x}", "bert.pooler.dense.{x}"),
    ("classifier.out.{x}", "classifier.{x}"),
)

ROBERTA_NAMES: Columns = (
    ("embedding.weight", "roberta.embeddings.word_embeddings.weight = lm_head.decoder.weight"),
    ("encoder.positions.weight", "roberta.embeddings.position_embeddings.weight[2:]"),
    *_blocks("roberta."),
    ("head.dense.{x}", "lm_head.dense.{x}"),
    ("head.norm.{x}", "lm_head.layer_norm.{x}"),
    ("head.bias", "lm_head.bias = lm_head.decoder.bias"),
    ("classifier.dense.{x}", "classifier.dense.{x}"),
    ("classifier.out.{x}", "classifier.out_proj.{x}"),
)


def _read(c: Foreign, names: set[str], *, reserved: int, masked: str, classes: str) -> Config:
    c.require("position_embedding_type", "absolute")
    c.require("is_decoder", False)
    c.require("tie_word_embeddings", True)
    hidden = c.number("hidden_dropout_prob", 0.1)
    return Config(
        family="encoder",
        vocab_size=c.whole("vocab_size"),
        dim=c.whole("hidden_size"),
        n_layers=c.whole("num_hidden_layers"),
        n_heads=c.whole("num_attention_heads"),
        hidden_dim=c.whole("intermediate_size"),
        max_len=c.whole("max_position_embeddings", 512) - reserved,
        activation=c.activation("hidden_act", "gelu"),
        positions=Positions(kind="learned"),
        norms=Norms(
            place="post", final=False, embedding=True, eps=c.number("layer_norm_eps", 1e-12)
        ),
        dropout=Dropout(
            embedding=hidden, residual=hidden, weights=c.number("attention_probs_dropout_prob", 0.1)
        ),
        n_token_types=c.whole("type_vocab_size", 2, least=0),
        output=Output(
            masked_tokens=any(name.startswith(masked) for name in names),
            classes=read_labels(c) if any(name.startswith(classes) for name in names) else (),
        ),
    )


def read_labels(c: Foreign) -> tuple[str, ...]:
    """The names of the classes, in the order of their scores."""
    labels = c.table("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    numbers = {str(i) for i in range(len(labels))}
    if labels.keys() != numbers or not all(isinstance(name, str) for name in labels.values()):
        raise CheckpointError(
            f"id2label in config.json must name classes by number, from 0; it is {quote(labels)}."
        )
    return tuple(labels[str(i)] for i in range(len(labels)))


def _read_bert(c: Foreign, names: set[str]) -> Config:
    return _read(c, names, reserved=0, masked="cls.predictions.", classes="classifier.")


def _read_roberta(c: Foreign, names: set[str]) -> Config:
    c.require("pad_token_id", 1)  # positions begin behind it
    config = _read(c, names, reserved=2, masked="lm_head.", classes="classifier.")
    if config.output.masked_tokens:
        c.require("hidden_act", "gelu")  # the head always has it
    return config


def _write(config: Config, *, reserved: int) -> dict[str, Any]:
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.dim,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.hidden_dim,
        "max_position_embeddings": config.max_len + reserved,
        "hidden_act": FOREIGN_ACTIVATIONS[config.activation],
        "layer_norm_eps": config.norms.eps,
        "hidden_dropout_prob": config.dropout.residual,
        "attention_probs_dropout_prob": config.dropout.weights,
        "type_vocab_size": config.n_token_types,
        **write_labels(config.output.classes),
    }


def write_labels(classes: tuple[str, ...]) -> dict[str, Any]:
    """The names of the classes, as transformers' configs list them."""
    if not classes:
        return {}
    return {
        "id2label": {str(i): name for i, name in enumerate(classes)},
        "label2id": {name: i for i, name in enumerate(classes)},
    }


def _head(config: Config, name: str) -> list[str]:
    if config.output.classes:
        return [f"{name}ForSequenceClassification"]
    return [f"{name}ForMaskedLM" if config.output.masked_tokens else f"{name}Model"]


def _write_bert(config: Config) -> dict[str, Any]:
    return {"architectures": _head(config, "Bert"), **_write(config, reserved=0)}


def _write_roberta(config: Config) -> dict[str, Any]:
    return {"architectures": _head(config, "Roberta"), **_write(config, reserved=2)}


def _write_xlm_roberta(config: Config) -> dict[str, Any]:
    return {"architectures": _head(config, "XLMRoberta"), **_write(config, reserved=2)}


BERT = Architecture(
    model_type="bert",
    prefix="bert.",
    columns=BERT_NAMES,
    read=_read_bert,
    write=_write_bert,
    # the pooler serves classes and next sentences alone
    ignored=r"bert\.pooler\..*|cls\.seq_relationship\..*|.*\.position_ids",
)
ROBERTA = Architecture(
    model_type="roberta",
    prefix="roberta.",
    columns=ROBERTA_NAMES,
    read=_read_roberta,
    write=_write_roberta,
    ignored=r"roberta\.pooler\..*|.*\.position_ids",
)
XLM_ROBERTA = Architecture(
    model_type="xlm-roberta",
    prefix="roberta.",
    columns=ROBERTA_NAMES,
    read=_read_roberta,
    write=_write_xlm_roberta,
    ignored=ROBERTA.ignored,
)
