"""Names of places in foreign models, from their paths."""

from types import SimpleNamespace

import pytest
from torch import nn

from glassformer.tracing.layout import Place
from glassformer.tracing.model_lookup import ModuleTree
from glassformer.tracing.site_names import name_places
from glassformer.tracing.sources.transformers_layout import TransformersLayout
from tracing.watched_architectures import built

PLAIN = SimpleNamespace(is_encoder_decoder=False)
NAMES = {
    "model.layers.3.self_attn": "decoder.3.self",
    "bert.encoder.layer.0.attention.self": "encoder.0.self",
    "decoder.block.2.layer.1.EncDecAttention": "decoder.2.cross",
    "model.decoder.layers.1.encoder_attn": "decoder.1.cross",
    "model.encoder.layers.1.self_attn": "encoder.1.self",
    "transformer.h.0.crossattention": "decoder.0.cross",
    "decoder.layers.1.encoder_decoder_attention.attention": "decoder.1.cross",
    "vision_model.encoder.layers.1.self_attn": "vision.1.self",
    "model.visual.blocks.7.attn": "vision.7.self",
    "audio_tower.layers.2.self_attn": "audio.2.self",
    "vision_model.head.attention": "vision_model.head.attention",
}


def module(**attributes: object) -> nn.Module:
    made = nn.Identity()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize("path", NAMES)
def test_names(path: str) -> None:
    (place,) = name_places([(path, module())], PLAIN).values()
    assert place.name == NAMES[path]


def test_who_sees_the_future_is_an_encoder_and_configs_know_decoders() -> None:
    found = name_places(
        [
            ("layers.0.attn", module(is_causal=False)),
            ("bert.encoder.layer.1.self", module(config=SimpleNamespace(is_decoder=True))),
        ],
        PLAIN,
    )
    assert [place.name for place in found.values()] == ["encoder.0.self", "decoder.1.self"]


def test_those_who_would_share_a_name_keep_their_paths() -> None:
    paths = ["encoder.layers.0.blocks.0.attn", "encoder.layers.0.blocks.1.attn"]
    found = name_places([(path, module()) for path in paths], PLAIN)
    assert [place.name for place in found.values()] == paths


def test_a_module_that_is_passed_again_is_the_next_layer() -> None:
    place = Place("encoder.0.self", "encoder", 0, False)
    assert place.in_later_layer(2).name == "encoder.2.self"
    assert place.in_later_layer(0) is place
    assert Place("pooler", "encoder", None, False).in_later_layer(1).name == "pooler"


def test_modules_that_are_passed_again() -> None:
    """Layers may share a module; where each has its own, a second pass is a part of the first."""
    place = Place("decoder.2.self", "decoder", 2, False)
    assert place.numbered_part(1) is place
    assert place.numbered_part(3).name == "decoder.2.self.part3"
    shared, separate = (
        TransformersLayout.of(ModuleTree(built(name, "eager"))) for name in ("albert", "bert")
    )
    assert [shared.is_shared(module) for module in shared.places] == [True]
    assert [separate.is_shared(module) for module in separate.places] == [False, False]
