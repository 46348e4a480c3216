import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import ConfigError
from glassformer.functional.positions.rotary_scalings import BandedScaling, NTKScaling, YaRNScaling
from glassformer.models import PRESETS, Config, Dropout, Norms, Positions

SMALL = {"family": "decoder", "vocab_size": 11, "dim": 8, "n_layers": 2, "n_heads": 2, "max_len": 9}


@pytest.mark.parametrize("name", PRESETS)
def test_presets_come_back_from_json(name: str) -> None:
    config = PRESETS[name]
    assert Config.from_dict(json.loads(json.dumps(config.as_dict()))) == config


@given(
    st.sampled_from(
        [
            NTKScaling(2.0, original_len=8),
            YaRNScaling(4.0, original_len=16, truncate=False),
            BandedScaling(8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_len=32),
        ]
    ),
    st.floats(0, 0.9),
)
def test_nested_values_come_back(scaling, share: float) -> None:
    config = Config(
        **SMALL,
        positions=Positions(kind="rotary", scaling=scaling),
        norms=Norms(kind="rms", place="post"),
        dropout=Dropout.everywhere(share),
    )
    assert Config.from_dict(json.loads(json.dumps(config.as_dict()))) == config


def test_defaults() -> None:
    config = Config(**SMALL)
    assert (config.n_kv_heads, config.head_dim, config.hidden_dim) == (2, 4, 32)
    assert config.replace(n_kv_heads=1, head_dim=3, hidden_dim=5).hidden_dim == 5
    assert config.replace(family="encoder_decoder", n_decoder_layers=5).decoder_layers == 5


def test_derived_sizes_follow_a_replaced_width_and_given_ones_do_not() -> None:
    config = Config(**SMALL)
    wider = config.replace(dim=12, n_heads=3)
    assert (wider.n_kv_heads, wider.head_dim, wider.hidden_dim) == (3, 4, 48)
    given = config.replace(n_kv_heads=1, head_dim=6, hidden_dim=5).replace(dim=16)
    assert (given.n_kv_heads, given.head_dim, given.hidden_dim) == (1, 6, 5)


def test_sizes_saved_as_null_are_derived() -> None:
    """Earlier versions saved them like that."""
    config = Config(**SMALL)
    null = {"n_kv_heads": None, "head_dim": None, "hidden_dim": None}
    assert Config.from_dict(config.as_dict() | null) == config
    assert not null.keys() & config.as_dict(derived=False).keys()
    assert Config.from_dict(config.as_dict(derived=False) | {"dim": 16}).hidden_dim == 64


@pytest.mark.plain
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"family": "both"},
            "family must be one of encoder, decoder, encoder_decoder, vision; got 'both'",
        ),
        ({"dim": 0}, "dim must be at least 1; got 0"),
        ({"n_heads": 3}, "dim=8, n_heads=3"),
        ({"n_heads": 4, "n_kv_heads": 3}, "n_heads=4, n_kv_heads=3"),
        ({"activation": "swish"}, "relu, gelu, gelu_tanh, silu; got 'swish'"),
        ({"n_decoder_layers": 3}, "family='encoder_decoder'; got family='decoder'"),
        ({"head_dim": 3, "positions": Positions(kind="rotary")}, "head_dim"),
    ],
)
def test_refusals(change: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        Config(**(SMALL | change))


@pytest.mark.plain
def test_a_name_is_no_part() -> None:
    sizes = {"vocab_size": 9, "dim": 8, "n_layers": 1, "n_heads": 2, "max_len": 16}
    expected = r"positions must be of the class Positions; got 'rotary'\. Write positions=Positions"
    with pytest.raises(ConfigError, match=expected):
        Config(family="decoder", positions="rotary", **sizes)


@pytest.mark.plain
def test_refusals_of_parts() -> None:
    with pytest.raises(ConfigError, match=r"positions.kind must be one of none.*got 'spiral'"):
        Positions(kind="spiral")
    with pytest.raises(ConfigError, match=r"positions .RoPE. can be scaled; got kind='learned'"):
        Positions(kind="learned", scaling=NTKScaling(2.0))
    with pytest.raises(ConfigError, match=r"dropout.weights must be .* less than 1; got 1.0"):
        Dropout(weights=1.0)
    plain = Config(**SMALL).as_dict()
    with pytest.raises(ConfigError, match=r"has no setting colour"):
        Config.from_dict(plain | {"colour": "red"})
    with pytest.raises(ConfigError, match=r"has no setting norms.size"):
        Config.from_dict(plain | {"norms": {"size": 3}})
    with pytest.raises(ConfigError, match=r"dim must be a whole number; got '8'"):
        Config.from_dict(plain | {"dim": "8"})
    with pytest.raises(ConfigError, match=r"output.classes.1 must be a string; got 3"):
        Config.from_dict(plain | {"output": {"classes": ["a", 3]}})
    with pytest.raises(ConfigError, match=r"n_layers must be at most 10,000; got 1000000000"):
        Config.from_dict(plain | {"n_layers": 10**9})
    with pytest.raises(ConfigError, match=r"has no setting hiden_dim. Did you mean hidden_dim"):
        Config.from_dict(plain | {"hiden_dim": 3})
    with pytest.raises(ConfigError, match=r"norms.eps must be a finite number; got nan"):
        Config.from_dict(plain | {"norms": {"eps": float("nan")}})
    with pytest.raises(ConfigError, match=r"window must be at least 1; got 0"):
        Config(**SMALL, window=0)
    del plain["vocab_size"]
    with pytest.raises(ConfigError, match=r"must have the setting vocab_size"):
        Config.from_dict(plain)
    rotary = {"kind": "rotary", "scaling": {"kind": "magic"}}
    with pytest.raises(ConfigError, match=r"linear, ntk, yarn, banded; got 'magic'"):
        Config.from_dict(plain | {"vocab_size": 3, "positions": rotary})
