"""ViT (Dosovitskiy et al. 2021): an encoder of the patches of an image."""

from typing import Any

from glassformer.models.checkpoints.architectures.architecture import (
    FOREIGN_ACTIVATIONS,
    Architecture,
    Foreign,
)
from glassformer.models.checkpoints.architectures.bert import read_labels, write_labels
from glassformer.models.checkpoints.names import Columns
from glassformer.models.config import Config, Dropout, Norms, Output, Positions
from glassformer.models.variants import Patches

_OURS, _THEIRS = "encoder.blocks.{i}.", "vit.encoder.layer.{i}."
_NAMES: Columns = (
    ("embedding.projection.{x}", "vit.embeddings.patch_embeddings.projection.{x}"),
    ("embedding.class_vector", "vit.embeddings.cls_token[0]"),
    ("encoder.positions.weight", "vit.embeddings.position_embeddings[0]"),
    (f"{_OURS}attention_norm.{{x}}", f"{_THEIRS}layernorm_before.{{x}}"),
    (f"{_OURS}attention.qkv.{{x}}", f"{_THEIRS}attention.attention.[query|key|value].{{x}}"),
    (f"{_OURS}attention.out.{{x}}", f"{_THEIRS}attention.output.dense.{{x}}"),
    (f"{_OURS}feed_forward_norm.{{x}}", f"{_THEIRS}layernorm_after.{{x}}"),
    (f"{_OURS}feed_forward.up.{{x}}", f"{_THEIRS}intermediate.dense.{{x}}"),
    (f"{_OURS}feed_forward.down.{{x}}", f"{_THEIRS}output.dense.{{x}}"),
    ("encoder.final_norm.{x}", "vit.layernorm.{x}"),
    ("classifier.{x}", "classifier.{x}"),
)


def _read(c: Foreign, names: set[str]) -> Config:
    c.require("qkv_bias", True)
    patches = Patches(
        image_size=c.whole("image_size", 224),
        patch_size=c.whole("patch_size", 16),
        n_channels=c.whole("num_channels", 3),
    )
    hidden = c.number("hidden_dropout_prob", 0.0)
    weights = c.number("attention_probs_dropout_prob", 0.0)
    return Config(
        family="vision",
        vocab_size=1,
        dim=c.whole("hidden_size"),
        n_layers=c.whole("num_hidden_layers"),
        n_heads=c.whole("num_attention_heads"),
        hidden_dim=c.whole("intermediate_size"),
        max_len=patches.n_patches + 1,
        activation=c.activation("hidden_act", "gelu"),
        positions=Positions(kind="learned"),
        norms=Norms(eps=c.number("layer_norm_eps", 1e-12)),
        dropout=Dropout(embedding=hidden, weights=weights, residual=hidden),
        output=Output(
            masked_tokens=False,
            classes=read_labels(c) if "classifier.weight" in names else (),
        ),
        patches=patches,
    )


def _write(config: Config) -> dict[str, Any]:
    patches = config.patches or Patches(image_size=224, patch_size=16)
    classes = config.output.classes
    return {
        "architectures": ["ViTForImageClassification" if classes else "ViTModel"],
        "hidden_size": config.dim,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.hidden_dim,
        "hidden_act": FOREIGN_ACTIVATIONS[config.activation],
        "layer_norm_eps": config.norms.eps,
        "hidden_dropout_prob": config.dropout.residual,
        "attention_probs_dropout_prob": config.dropout.weights,
        "image_size": patches.image_size,
        "patch_size": patches.patch_size,
        "num_channels": patches.n_channels,
        "qkv_bias": True,
        **write_labels(classes),
    }


VIT = Architecture(
    model_type="vit",
    prefix="vit.",
    columns=_NAMES,
    read=_read,
    write=_write,
    ignored=r"vit\.pooler\..*",
)
