"""One row through its block: what is recomputed equals what the model computed."""

import re
from typing import Any

import pytest
import torch

import glassformer as gf
from closeness import assert_close
from glassformer.analysis.block_rows import Rotation, read_block_row, rotate_row
from glassformer.errors import TraceError
from glassformer.functional.positions.rotary import rotate
from glassformer.models import Config, Norms, Positions
from glassformer.models.presets import build

SIZES: dict[str, Any] = {
    "vocab_size": 29, "dim": 24, "n_layers": 2, "n_heads": 6, "max_len": 16, "hidden_dim": 10,
}  # fmt: skip
VARIANTS: dict[str, dict[str, Any]] = {
    "pre-norm, learned": {},
    "post-norm": {"norms": Norms(place="post", final=False)},
    "grouped, rms, head norms": {
        "n_kv_heads": 2, "biases": "none", "gated": True, "activation": "silu",
        "norms": Norms(kind="rms", heads=True), "positions": Positions(kind="rotary"),
    },
    "interleaved, wide heads": {
        "head_dim": 6, "biases": "qkv",
        "positions": Positions(kind="rotary", layout="interleaved"),
    },
    "alibi, softcap": {"positions": Positions(kind="alibi"), "softcap": 3.0, "activation": "relu"},
    "relative": {"positions": Positions(kind="relative", n_buckets=8), "attention_scale": 0.7},
}  # fmt: skip


def make(family: str, **changes: Any) -> torch.nn.Module:
    model = build(Config(family=family, **(SIZES | changes))).eval()  # type: ignore[arg-type]
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.double()


def record(model: torch.nn.Module, **options: Any) -> gf.Trace:
    tokens = torch.arange(7)[None] + 3
    with gf.watch(model, outputs=True, residual=True, **options) as trace, torch.no_grad():
        model(torch.arange(5)[None], tokens) if hasattr(model, "decoder") and hasattr(
            model, "encoder"
        ) else model(tokens)
    return trace


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("family", ["encoder", "decoder", "encoder_decoder"])
def test_every_step_gives_what_the_model_computed(family: str, variant: str) -> None:
    model = make(family, **VARIANTS[variant])
    trace = record(model)
    for site in trace:
        found = read_block_row(model, trace, site.name, head=5, query=3)
        assert found.changed() == []
        for name, (apart, size) in found.differences.items():
            # rotary tables are float32, also of a float64 model
            assert apart <= 1e-6 * size, f"{site.name} {name}: {apart:.2g} of {size:.2g}"
        is_last = site.name.endswith(".cross") or not site.name.startswith("decoder")
        assert (found.feed_forward is not None) == (is_last or family != "encoder_decoder")


def test_the_stream_after_the_feed_forward_is_that_of_the_trace() -> None:
    model = make("decoder", norms=Norms(place="post", final=False))
    trace = record(model)
    found = read_block_row(model, trace, "decoder.1.self", head=0, query=6)
    assert found.feed_forward is not None and found.after_norm is not None
    stream = trace.residual()
    assert_close(found.end, stream.after("decoder.1.self")[0, 6], 1e-12)
    assert_close(found.feed_forward.end, stream.end[0, 6], 1e-12)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_a_row_is_rotated_as_all_rows_are(layout: Any) -> None:
    cos, sin = torch.rand(1, 3, dtype=torch.float64), torch.rand(1, 3, dtype=torch.float64)
    x = torch.randn(1, 1, 1, 8, dtype=torch.float64)
    expected = rotate(x, cos, sin, layout=layout)[0, 0, 0]
    assert_close(rotate_row(x[0, 0, 0], Rotation(cos[0], sin[0], layout)), expected, 1e-15)


def test_an_intervention_is_noticed_where_it_is() -> None:
    model = make("decoder")
    with (
        gf.change(model, gf.Ablate("decoder.1.self", head=2), outputs=True, residual=True) as trace,
        torch.no_grad(),
    ):
        model(torch.arange(7)[None])
    assert read_block_row(model, trace, "decoder.1.self", head=2, query=4).changed() != []
    assert read_block_row(model, trace, "decoder.0.self", head=2, query=4).changed() == []


@pytest.mark.parametrize(
    ("head", "query", "said"),
    [(6, 0, "has heads 0 … 5; got head=6"), (0, 7, "has queries 0 … 6; got query=7")],
)
def test_places_that_are_not_there_are_named(head: int, query: int, said: str) -> None:
    model = make("decoder")
    with pytest.raises(TraceError, match=re.escape(said)):
        read_block_row(model, record(model), "decoder.0.self", head=head, query=query)


def test_a_model_of_another_kind_is_refused() -> None:
    model = make("decoder")
    with pytest.raises(TraceError, match="need one of our models"):
        read_block_row(torch.nn.Identity(), record(model), "decoder.0.self", head=0, query=0)
