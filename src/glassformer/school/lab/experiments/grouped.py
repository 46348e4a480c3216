"""Grouped-query heads: a smaller cache, the same function as repeated heads, and what it costs."""

from typing import NamedTuple

import torch

from glassformer.functional import attention
from glassformer.models import Config, Decoder, Positions
from glassformer.models.parameters import count_parameters
from glassformer.render.chart import Axis, Bars, Chart, Lines, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.measurement import largest_difference
from glassformer.school.lab.panels import choose_steps, pick_steps
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import Batch, accuracy, train_toy, warmup_cosine
from glassformer.training.loss import IGNORED


class _Size(NamedTuple):
    groups: tuple[int, ...]
    steps: int


_SIZES = {"quick": _Size((8, 2, 1), 180), "full": _Size((8, 4, 2, 1), 500)}
_HEADS, _DIM, _LAYERS, _LENGTH, _BATCH = 8, 64, 2, 24, 16
_KEYS, _VALUES = 6, 8
N_TOKENS, RECALL_LENGTH = _KEYS * _VALUES + _KEYS, _LENGTH  # of the task


def draw_recall(generator: torch.Generator, n: int = _BATCH) -> Batch:
    """Pairs of a key and a value in any order; then keys alone, each asking for its value.

    A pair is one token, so that attention can find it by its content.
    """
    order = torch.stack([torch.randperm(_KEYS, generator=generator) for _ in range(n)])
    values = torch.randint(0, _VALUES, (n, _KEYS), generator=generator)
    pairs = order * _VALUES + values
    asked = torch.randint(0, _KEYS, (n, _LENGTH - _KEYS), generator=generator)
    tokens = torch.cat([pairs, _KEYS * _VALUES + order.gather(1, asked)], 1)
    targets = torch.full_like(tokens, IGNORED)
    targets[:, _KEYS:] = values.gather(1, asked)
    return tokens, targets


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """A model for every number of key-value heads, trained alike."""
    groups, steps = _SIZES[size]
    found: dict[str, list[float]] = {
        name: [] for name in ("bytes", "parameters", "right", "loss", "apart")
    }
    curves: list[list[float]] = [[] for _ in groups]
    numbers: Numbers = {
        "groups": list(groups),
        "heads": _HEADS,
        "steps": steps,
        "curves": curves,
        **found,
    }
    for (K, losses), own in iterate_with_progress(
        tuple(zip(groups, curves, strict=True)), progress, numbers
    ):
        found["apart"].append(_grouping_error(K))
        torch.manual_seed(seed)
        config = Config(
            family="decoder",
            vocab_size=_KEYS * _VALUES + _KEYS,
            dim=_DIM,
            n_layers=_LAYERS,
            n_heads=_HEADS,
            n_kv_heads=K,
            max_len=_LENGTH,
            positions=Positions(kind="rotary"),
        )
        model = Decoder(config)
        train_toy(
            model,
            draw_recall,
            steps=steps,
            schedule=warmup_cosine(3e-3, steps),
            seed=seed,
            progress=own,
            losses=losses,
        )
        tokens, targets = draw_recall(torch.Generator().manual_seed(seed + 1), 64)
        with torch.no_grad():
            found["right"].append(accuracy(model(tokens), targets))
            cache = model.new_cache()
            model(tokens[:1], cache=cache)
        kept = [t for layer in cache.layers for t in (layer.k, layer.v) if t is not None]
        found["bytes"].append(sum(t.nbytes for t in kept) / _LENGTH)
        found["parameters"].append(count_parameters(model))
        found["loss"].append(sum(losses[-10:]) / 10)
    return numbers


def _grouping_error(K: int) -> float:
    """Grouped attention against ordinary attention with every key-value head written out."""
    q = torch.randn(2, _HEADS, 7, 5, dtype=torch.float64)
    k, v = torch.randn(2, 2, K, 11, 5, dtype=torch.float64).unbind(0)
    repeated = (t.repeat_interleave(_HEADS // K, dim=1) for t in (k, v))
    return largest_difference(attention(q, k, v), attention(q, *repeated))


def judge(numbers: Numbers) -> Verdict:
    groups, heads = numbers["groups"], numbers["heads"]
    sizes = [size / numbers["bytes"][0] for size in numbers["bytes"]]
    lost = numbers["right"][0] - min(numbers["right"])
    return Verdict.of(
        Check("equal", max(numbers["apart"]) < 1e-12, {"apart": max(numbers["apart"])}),
        # Counted, not measured: exact.
        Check(
            "bytes",
            sizes == [K / heads for K in groups],
            {"most": numbers["bytes"][0], "least": numbers["bytes"][-1], "one": groups[-1]},
        ),
        # Ainslie et al. 2023 lose about a percent on real tasks; a small model on a small task
        # may lose more before one would call it broken.
        Check(
            "quality",
            numbers["right"][0] > 0.5 and lost < 0.15,
            {"all": numbers["right"][0], "worst": min(numbers["right"]), "lost": lost},
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    names = tuple(texts("name", n=K) for K in numbers["groups"])
    points = choose_steps(numbers["steps"])
    return Chart(
        (
            Bars(
                title=texts("bytes"),
                y=Axis(label=texts("per_token")),
                names=names,
                series=(Series(name=texts("per_token"), values=tuple(numbers["bytes"])),),
            ),
            Bars(
                title=texts("right"),
                y=Axis(label=texts("share")),
                names=names,
                series=(Series(name=texts("share"), values=tuple(numbers["right"])),),
            ),
            Lines(
                title=texts("learning"),
                x=Axis(label=texts("step")),
                y=Axis(label=texts("loss"), least=0.0),
                places=tuple(float(i) for i in points),
                series=tuple(
                    Series(name=name, values=pick_steps(curve, points))
                    for name, curve in zip(names, numbers["curves"], strict=True)
                ),
            ),
        )
    )


EXPERIMENT = Experiment(
    name="grouped",
    look_at=(
        "functional/reference.py:attention_weights",
        "layers/attention.py:SelfAttention",
        "functional/cache.py:GrowingCache",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
