"""Recording a part: what is kept is the same as in a record of everything."""

import threading
from typing import Any

import pytest
import torch

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.errors import TraceError
from glassformer.functional.cells import Extent
from glassformer.generation import beam_search, generate_tokens
from glassformer.layers import Core
from glassformer.models import Config, Positions, build
from glassformer.tracing import Site, watch
from glassformer.tracing.selection import select_heads, select_rows
from letter_models import letter_model
from tiny_models import tiny

B, H, L, S = 2, 4, 9, 11
HEADS = (1, 2)
FAMILIES = ["encoder", "decoder", "encoder_decoder"]
KINDS = ["rotary", "alibi", "relative"]


def model(family: str, kind: str = "rotary") -> Any:
    built = build(
        Config(
            family=family,
            vocab_size=17,
            dim=24,
            n_layers=3,
            n_heads=H,
            n_kv_heads=2,
            max_len=64,
            positions=Positions(kind=kind, n_buckets=8, max_distance=9),
        )
    )
    return built.double().eval()


def run(built: Any) -> None:
    tokens, source = torch.arange(L).repeat(B, 1) % 17, torch.arange(S).repeat(B, 1) % 17
    torch.manual_seed(0)
    with torch.no_grad():
        if built.config.family == "encoder_decoder":
            built(source, tokens, source_mask=gf.Padding(torch.tensor([S, 4])))
        else:
            built(tokens, mask=gf.Padding(torch.tensor([L, 5])))


def assert_part(part: Site, whole: Site, rows: list[int], atol: float = 1e-12) -> None:
    """Everything that the part says is what the whole says of these heads and rows."""
    for sequence in range(whole.shape[0]):
        for head in part.head_numbers:
            expected = whole.weights(head, rows, sequence=sequence)
            assert_close(part.weights(head, sequence=sequence), expected, atol, "weights")
            for name in ("entropy", "peak", "distance"):
                found = getattr(part, name)(head, sequence=sequence)
                right = getattr(whole, name)(head, sequence=sequence)[rows]
                assert_close(found, right, atol, name)
            cell = part.arithmetic(head, len(rows) - 1, 0, sequence=sequence)
            right = whole.arithmetic(head, rows[-1], 0, sequence=sequence)
            assert cell.weight == pytest.approx(right.weight, abs=atol)
    if part.out is not None and whole.out is not None:
        assert_same(part.out, whole.out[:, list(part.head_numbers)][:, :, rows])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rows", [None, [0, 3, 8], slice(2, 6), slice(None, None, 3), "last"])
def test_some_heads_and_rows_of_our_models(family: str, kind: str, rows: Any) -> None:
    built = model(family, kind)
    with watch(built, outputs=True) as whole:
        run(built)
    with watch(built, layers=[0, 2], heads=HEADS, rows=rows, outputs=True) as part:
        run(built)
    assert part.names == [n for n in whole.names if ".1." not in n]
    for site in part:
        full = whole[site.name]
        n = full.shape[2]
        every = {None: list(range(n)), "last": [n - 1]}
        wanted = every[rows] if rows is None or rows == "last" else None
        if wanted is None:
            wanted = list(range(n))[rows] if isinstance(rows, slice) else rows
        assert site.head_numbers == HEADS
        assert site.rows == (None if rows is None else tuple(wanted))
        assert site.q.shape[:3] == (B, 2, len(wanted))
        assert_part(site, full, wanted)
        assert site.difference_from_output() < 1e-12
        labels = [whole.labels(full.queries)[i] for i in wanted]
        assert part.labels(site.queries) == labels


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize(("every", "rows"), [(3, None), (1, "last"), (2, slice(2, 9))])
def test_every_nth_step_of_generation(beams: int, every: int, rows: Any) -> None:
    built = model("decoder")
    prompt = [[1, 2, 3], [4, 5, 6]]

    def write() -> None:
        if beams == 1:
            list(generate_tokens(built, prompt, max_new_tokens=8))
        else:
            beam_search(built, prompt[:1], beams=beams, max_new_tokens=8)

    with watch(built) as whole:
        write()
    with watch(built, every=every, rows=rows) as part:
        write()
    steps = [[0, 1, 2], *([i] for i in range(3, whole["decoder.0.self"].shape[2]))]
    kept = [step for i, step in enumerate(steps) if i % every == 0]
    if rows == "last":
        kept = [step[-1:] for step in kept]
    wanted = [row for step in kept for row in step]
    if isinstance(rows, slice):
        wanted = [row for row in wanted if rows.start <= row < rows.stop]
    for site in part:
        assert site.rows == tuple(wanted)
        assert_part(site, whole[site.name], wanted)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ["llama", "gpt2", "marian", "bart"])
def test_some_heads_rows_and_steps_of_transformers(name: str, implementation: str) -> None:
    built: Any = tiny(name).eval()
    built.set_attn_implementation(implementation)
    tokens = torch.arange(5, 12).repeat(2, 1)
    mask = torch.ones_like(tokens)
    mask[1, :3] = 0
    options = {"attention_mask": mask, "max_new_tokens": 7, "min_new_tokens": 7, "do_sample": False}
    with gf.watch(built, outputs=True) as whole:
        built.generate(tokens, **options)
    n_heads = next(iter(whole)).n_heads
    heads = range(1, n_heads)
    with gf.watch(built, outputs=True, heads=heads, every=3, budget=2000) as part:
        built.generate(tokens, **options)
    assert part.names == whole.names
    for site in part:
        full = whole[site.name]
        assert site.head_numbers == tuple(heads) and site.rows is not None
        assert_part(site, full, list(site.rows), 1e-5)
        assert len(site.rows) < full.shape[2] or full.queries == "source"


def test_rows_that_never_came_are_told() -> None:
    built = model("decoder")
    with watch(built, rows=[50]) as trace:
        run(built)
    assert trace.names == []
    with pytest.raises(TraceError, match="none of the chosen rows has passed"):
        trace["decoder.0.self"]


def test_only_this_thread_is_seen_and_observers_do_not_disturb_each_other() -> None:
    built = model("decoder")
    with watch(built) as outer, watch(built, heads=[3]) as inner:
        other = threading.Thread(target=run, args=(built,))
        other.start()
        other.join()
        assert len(outer) == len(inner) == 0
        run(built)
    assert len(outer.runs) == len(inner.runs) == 1
    assert_part(inner["decoder.1.self"], outer["decoder.1.self"], list(range(L)))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in built.modules())


def test_after_an_exception_nothing_is_left() -> None:
    built = model("decoder")

    def fail(*_args: Any) -> None:
        raise RuntimeError("in the middle")

    core = next(m for m in built.modules() if isinstance(m, Core))
    handle = core.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="in the middle"), watch(built):
        run(built)
    handle.remove()
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in built.modules())
    assert torch.overrides._get_current_function_mode() is None
    with watch(built) as trace:
        run(built)
    assert trace["decoder.2.self"].shape == (B, H, L, L)


MASKS = {
    "causal": gf.Causal(),
    "causal at 4": gf.Causal(offset=4),
    "window": gf.Causal() & gf.Window(left=3),
    "not": ~gf.Window(left=3),
    "padding": gf.Causal() & gf.Padding(torch.tensor([5, 11])),
    "of queries": gf.Padding(torch.tensor([5, 9]), of="queries"),
    "cells": gf.Explicit(torch.rand(B, H, L, S) > 0.4) | gf.Causal(),
}


@pytest.mark.parametrize("rows", [[2, 3, 4], [0, 5, 8], [6, 7, 8]])
@pytest.mark.parametrize("name", MASKS)
def test_masks_of_some_heads_and_rows(name: str, rows: list[int]) -> None:
    extent = Extent(B, H, L, S)
    mask = MASKS[name].fit_to(extent, torch.device("cpu"))
    whole = mask.dense(L, S, batch=B, n_heads=H).expand(B, H, L, S)
    part = select_heads(select_rows(mask, torch.tensor(rows), extent), (0, 3))
    dense = part.dense(len(rows), S, batch=B, n_heads=2).expand(B, 2, len(rows), S)
    assert_same(dense, whole[:, [0, 3]][:, :, rows])


def test_formulas_stay_formulas_where_rows_lie_side_by_side() -> None:
    part = select_rows(gf.Causal() & gf.Window(left=3), torch.tensor([6, 7, 8]), Extent(B, H, L, S))
    assert repr(part) == "Causal() & Window(left=3)"


@pytest.mark.plain
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"layers": [3]}, r"This model has layers 0 … 2; got layers=\[3\]."),
        ({"heads": [1, 4]}, r"This model has heads 0 … 3; got heads=\[1, 4\]."),
        ({"heads": []}, r"heads must be numbers from 0 up; got \[\]."),
        ({"rows": [-1]}, r"rows must be numbers from 0 up; got \[-1\]."),
        ({"rows": slice(-4, None)}, "counts from its beginning; got slice"),
        ({"rows": "first"}, "or \"last\"; got 'first'"),
        ({"every": 0}, "every must be at least 1; got every=0."),
    ],
)
def test_choices_that_make_no_sense(options: dict, sentence: str) -> None:
    with (
        pytest.raises(TraceError, match=sentence),
        watch(letter_model("decoder", n_layers=3, n_heads=4, dim=24), **options),
    ):
        pass


@pytest.mark.plain
def test_heads_that_were_not_recorded_are_told() -> None:
    built = model("decoder")
    with watch(built, heads=[1, 3]) as trace:
        run(built)
    with pytest.raises(
        TraceError, match=r"Of decoder.0.self, heads 1, 3 were recorded; got head=0."
    ):
        trace["decoder.0.self"].weights(0)
    tiny_llama: Any = tiny("llama")
    with pytest.raises(TraceError, match="heads"), gf.watch(tiny_llama, heads=[99]) as watched:
        tiny_llama(torch.tensor([[1, 2]]))
        watched["decoder.0.self"]


@pytest.mark.plain
def test_rollout_needs_all_heads() -> None:
    built = model("decoder")
    with watch(built, heads=[1, 3]) as trace:
        run(built)
    with pytest.raises(TraceError, match=r"of decoder.0.self only some were recorded"):
        trace.rollout("decoder")
