"""Path patching: the same edges made by hand, with plain hooks."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import glassformer as gf
from closeness import assert_close
from glassformer.errors import InterventionError
from glassformer.models.config import Norms
from letter_models import letter_model
from tracing.watched_architectures import built

CLEAN, CORRUPTED = torch.tensor([[5, 9, 4, 13, 24]]), torch.tensor([[5, 21, 4, 13, 24]])


def measure(logits: Tensor) -> Tensor:
    return logits[:, 7] - logits[:, 11]


class ByHand:
    """Where a model reads and writes its stream, found by its module names."""

    def __init__(self, name: str) -> None:
        torch.manual_seed(5)
        self.is_post = name == "post-norm"
        if name == "gpt2":
            self.model: Any = built("gpt2", "sdpa")
            self.blocks = self.model.transformer.h
            self.last: nn.Module = self.model.transformer.ln_f
        else:
            place: Any = "post" if self.is_post else "pre"
            self.model = letter_model("decoder", n_layers=2, norms=Norms(place=place, final=True))
            self.blocks = self.model.decoder.blocks
            self.last = self.model.decoder.final_norm
        self.is_gpt2 = name == "gpt2"

    def writer(self, layer: int, kind: str) -> nn.Module:
        block = self.blocks[layer]
        if self.is_gpt2:
            return block.attn if kind == "self" else block.mlp
        return block.attention if kind == "self" else block.feed_forward

    def reader(self, layer: int, kind: str) -> nn.Module:
        """What is given the stream that a part reads, and nothing else."""
        block = self.blocks[layer]
        if self.is_gpt2:
            return block.ln_1 if kind == "self" else block.ln_2
        if self.is_post:
            return block.attention if kind == "self" else block.feed_forward
        return block.attention_norm if kind == "self" else block.feed_forward_norm

    def heads(self, layer: int) -> nn.Module:
        block = self.blocks[layer]
        return block.attn.c_proj if self.is_gpt2 else block.attention.core

    def norm(self, layer: int, kind: str) -> Callable[[Tensor], Tensor]:
        """What the stream passes after a part."""
        block = self.blocks[layer]
        if not self.is_post:
            return lambda x: x
        return block.attention_norm if kind == "self" else block.feed_forward_norm

    def run(self, tokens: Tensor, hooks: list[tuple[nn.Module, Any, bool]]) -> Tensor:
        handles = [
            m.register_forward_pre_hook(hook) if is_before else m.register_forward_hook(hook)
            for m, hook, is_before in hooks
        ]
        try:
            with torch.no_grad():
                out = self.model(tokens)
        finally:
            for handle in handles:
                handle.remove()
        return out if isinstance(out, Tensor) else out.logits

    def record(self, tokens: Tensor, also: Any = ()) -> dict[Any, Tensor]:
        """What every part writes, the start, and the heads."""
        found: dict[Any, Tensor] = {}

        def keep(key: Any, before: bool = False) -> Any:
            def hook(_module: nn.Module, args: tuple, out: Any = None) -> None:
                value = args[0] if before else out
                found[key] = value if isinstance(value, Tensor) else value[0]

            return hook

        hooks: list[tuple[nn.Module, Any, bool]] = [(self.blocks[0], keep("start", True), True)]
        for i in range(2):
            hooks += [(self.writer(i, k), keep((i, k)), False) for k in ("self", "mlp")]
            hooks.append((self.heads(i), keep((i, "heads"), self.is_gpt2), self.is_gpt2))
        self.run(tokens, [*also, *hooks])
        return found

    def replace_head(self, layer: int, head: int, clean: Tensor) -> tuple[nn.Module, Any, bool]:
        width = clean.shape[-1] // 3 if self.is_gpt2 else 0

        def before(_module: nn.Module, args: tuple) -> tuple:
            z = args[0].clone()
            z[..., head * width : (head + 1) * width] = clean[..., head * width :][..., :width]
            return (z, *args[1:])

        def after(_module: nn.Module, _args: tuple, out: Tensor) -> Tensor:
            out = out.clone()
            out[:, head] = clean[:, head]
            return out

        return self.heads(layer), before if self.is_gpt2 else after, self.is_gpt2

    def stream(self, values: dict[Any, Tensor], stop: tuple[int, str] | None) -> Tensor:
        """The sum of what is written before a part, with the norms that it passes."""
        x = values["start"]
        for layer in range(2):
            for kind in ("self", "mlp"):
                if (layer, kind) == stop:
                    return x
                x = self.norm(layer, kind)(x + values[layer, kind])
        return x


@pytest.mark.parametrize("name", ["gpt2", "ours", "post-norm"])
def test_edges_are_those_made_by_hand(name: str) -> None:
    hand = ByHand(name)
    found = gf.sweep(hand.model, CLEAN, CORRUPTED, over="edges", metric=measure, batch=3)
    clean, corrupted = hand.record(CLEAN), hand.record(CORRUPTED)
    assert found.columns == [
        *(f"decoder.{i}.{k}" for i in range(2) for k in ("self", "mlp")),
        "logits",
    ]
    assert found.rows[0] == "decoder.start" and "decoder.1.mlp" in found.rows
    n_checked = 0
    for row, sender in enumerate(found.rows):
        values, order = dict(corrupted), -1
        if sender == "decoder.start":
            values["start"] = clean["start"]
        else:
            _, number, kind, *head = sender.split(".")
            part, layer = (int(number), kind), int(number)
            order = 2 * layer + (kind == "mlp")
            if head:
                hook = hand.replace_head(layer, int(head[0]), clean[layer, "heads"])
                values[part] = hand.record(CORRUPTED, [hook])[part]
            else:
                values[part] = clean[part]
        for column in range(5):
            receiver = None if column == 4 else divmod(column, 2)
            if receiver is not None and order >= column:
                assert found.values[row, column].isnan()
                continue
            stop = None if receiver is None else (receiver[0], ("self", "mlp")[receiver[1]])
            with torch.no_grad():
                state = hand.stream(values, stop)
            reader = hand.last if stop is None else hand.reader(*stop)

            def read(_module: nn.Module, args: tuple, state: Tensor = state) -> tuple:
                return (state, *args[1:])

            logits = hand.run(CORRUPTED, [(reader, read, True)])
            expected = measure(logits[:, -1])[0].double()
            assert_close(found.values[row, column], expected, 1e-4, f"{sender} → {column}")
            n_checked += 1
    assert n_checked > 20


def test_parallel_parts_do_not_tell_each_other() -> None:
    model = built("gpt-neox", "sdpa")
    found = gf.sweep(model, CLEAN, CORRUPTED, over="edges", metric=measure)
    to = {name: i for i, name in enumerate(found.columns)}
    row = found.rows.index("decoder.0.self.0")
    assert found.values[row, to["decoder.0.mlp"]].isnan()
    assert not found.values[row, to["decoder.1.self"]].isnan()


def test_senders_and_receivers_can_be_named() -> None:
    model = letter_model("decoder", n_layers=2)
    options: Any = {"over": "edges", "metric": ("q", "z")}
    whole = gf.sweep(model, "abcde", "abxde", **options)
    some = gf.sweep(
        model,
        "abcde",
        "abxde",
        senders=["decoder.0.self.1", "decoder.0.self"],
        receivers=["logits", "decoder.1.mlp"],
        **options,
    )
    assert some.rows == ["decoder.0.self.1", "decoder.0.self"]
    assert some.columns == ["logits", "decoder.1.mlp"]
    row = whole.rows.index("decoder.0.self.1")
    expected = whole.values[row, [whole.columns.index(name) for name in some.columns]]
    assert_close(some.values[0], expected, 1e-4)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"senders": ["decoder.9.self"]}, "senders must be among decoder.start"),
        ({"receivers": []}, "receivers must be among decoder.0.self.*got none"),
        (
            {"senders": ["decoder.1.mlp"], "receivers": ["decoder.0.self"]},
            "No edge leads from decoder.1.mlp to decoder.0.self",
        ),
        ({"method": "both"}, "Edges are patched alone"),
        ({"over": "heads", "senders": ["decoder.0.self.1"]}, "are of over='edges'"),
    ],
)
def test_edges_that_do_not_exist_are_refused(given: dict[str, Any], said: str) -> None:
    model = letter_model("decoder", n_layers=2)
    options: Any = {"over": "edges", "metric": ("q", "z"), **given}
    with pytest.raises(InterventionError, match=said):
        gf.sweep(model, "abcde", "abxde", **options)
