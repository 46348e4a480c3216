"""Latent attention: what it caches, that no key need be formed, what a narrow latent loses."""

from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.functional import Causal, Rotary, attention, rotate
from glassformer.layers import LatentAttention
from glassformer.models import Config, Decoder, Latent, Positions
from glassformer.render.chart import Axis, Bars, Chart, Lines, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.experiments.grouped import (
    N_TOKENS,
    RECALL_LENGTH,
    draw_recall,
)
from glassformer.school.lab.measurement import largest_difference
from glassformer.school.lab.panels import choose_steps, pick_steps
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import accuracy, train_toy, warmup_cosine


class _Size(NamedTuple):
    steps: int


_SIZES = {"quick": _Size(240), "full": _Size(400)}
_HEADS, _DIM, _LAYERS, _ROTATED = 8, 64, 1, 4
_WIDTH = _DIM // _HEADS
_HEAD_COUNTS = (4, 8, 16)  # for which the cache of a latent is counted


def make_configs() -> dict[str, Config]:
    """The kinds of attention by name; "latent" caches as many numbers as one key-value head."""
    plain = Config(
        family="decoder",
        vocab_size=N_TOKENS,
        dim=_DIM,
        n_layers=_LAYERS,
        n_heads=_HEADS,
        max_len=RECALL_LENGTH,
        positions=Positions(kind="rotary"),
    )
    return {
        "mha": plain,
        "mqa": plain.replace(n_kv_heads=1),
        "latent": _with_latent(plain, 2 * _WIDTH - _ROTATED),
        "narrow": _with_latent(plain, 1),
    }


def _with_latent(plain: Config, width: int) -> Config:
    latent = Latent(kv_dim=width, rotary_dim=_ROTATED, value_dim=_WIDTH)
    return plain.replace(head_dim=_WIDTH + _ROTATED, latent=latent)


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Models trained alike on recalling pairs, with keys and values of each head or with latents.

    Of multi-query attention only the cache is counted: the experiment on grouped queries trains it.
    """
    (steps,) = _SIZES[size]
    configs = make_configs()
    curves: dict[str, list[float]] = {name: [] for name in configs if name != "mqa"}
    right: dict[str, float] = {}
    numbers: Numbers = {
        "steps": steps,
        "cached": {name: _count_cached(config) for name, config in configs.items()},
        "right": right,
        "curves": curves,
        "by_heads": {
            str(H): _count_cached(configs["latent"].replace(n_heads=H)) for H in _HEAD_COUNTS
        },
        "latent": sum(configs["latent"].cache_shape[1:]),
        "apart": _absorption_error(seed),
    }
    tokens, targets = draw_recall(torch.Generator().manual_seed(seed + 1), 64)
    for name, own in iterate_with_progress(list(curves), progress, numbers):
        torch.manual_seed(seed)
        model = Decoder(configs[name])
        train_toy(
            model,
            draw_recall,
            steps=steps,
            schedule=warmup_cosine(5e-3, steps),
            seed=seed,
            progress=own,
            losses=curves[name],
        )
        with torch.no_grad():
            right[name] = accuracy(model(tokens), targets)
    return numbers


def _count_cached(config: Config) -> int:
    """How many numbers a layer keeps of a token, counted in a cache."""
    model = Decoder(config)
    cache, n = model.new_cache(), 3
    with torch.no_grad():
        model(torch.zeros(1, n, dtype=torch.long), cache=cache)
    layer = cache.layers[0]
    assert layer.k is not None and layer.v is not None
    return (layer.k.numel() + layer.v.numel()) // n


def _absorption_error(seed: int) -> float:
    """A layer against the same with its matrices absorbed: latents are scored, no key is formed."""
    torch.manual_seed(seed)
    H, D, E, R, P, L = 3, 10, 7, 8, 4, 11
    layer = LatentAttention(12, H, head_dim=D, value_dim=E, kv_dim=R, rotary_dim=P).double()
    x, tables = torch.randn(2, L, 12, dtype=torch.float64), Rotary(P).tables(L, dtype=torch.float64)
    with torch.no_grad():
        expanded = layer(x, mask=Causal(), tables=tables)
        q = layer.q(x).unflatten(-1, (H, D)).transpose(1, 2)
        q_plain, q_rotated = q.split([D - P, P], dim=-1)
        latent, k_rotated = layer.kv_down(x).split([R, P], dim=-1)
        latent = layer.kv_norm(latent).unsqueeze(1)  # (B, 1, L, R): shared by all heads
        up: Tensor = layer.kv_up.weight.unflatten(0, (H, D - P + E))
        w_uk, w_uv = up.split([D - P, E], dim=1)
        q = torch.cat([q_plain @ w_uk, rotate(q_rotated, *tables)], dim=-1)
        k = torch.cat([latent, rotate(k_rotated.unsqueeze(1), *tables)], dim=-1)
        mixed = attention(q, k, latent, mask=Causal(), scale=D**-0.5)  # (B, H, L, R)
        absorbed = layer.out((mixed @ w_uv.transpose(-2, -1)).transpose(1, 2).flatten(2))
    return largest_difference(expanded, absorbed)


def judge(numbers: Numbers) -> Verdict:
    right, cached = numbers["right"], numbers["cached"]
    counted = list(numbers["by_heads"].values())
    return Verdict.of(
        # A task this small cannot show small losses: as in the experiment on grouped queries.
        Check(
            "quality",
            right["mha"] > 0.5
            and right["latent"] > right["mha"] - 0.15
            and cached["latent"] <= cached["mqa"] < cached["mha"],
            {
                **{name: right[name] for name in ("mha", "latent")},
                "all": cached["mha"],
                "few": cached["latent"],
            },
        ),
        Check(
            "heads",
            counted == [numbers["latent"]] * len(counted),
            {"counts": ", ".join(map(str, counted)), "sum": numbers["latent"]},
        ),
        Check("absorbed", numbers["apart"] < 1e-12, {"apart": numbers["apart"]}),
        Check(
            "narrow",
            right["narrow"] < right["latent"] - 0.2,
            {"latent": right["latent"], "narrow": right["narrow"]},
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    points = choose_steps(numbers["steps"])

    def bars(what: str, most: float | None = None) -> Bars:
        return Bars(
            title=texts(what),
            y=Axis(label=texts(f"{what}_axis"), least=0.0, most=most),
            names=tuple(texts(name) for name in numbers[what]),
            series=(Series(name=texts(f"{what}_axis"), values=tuple(numbers[what].values())),),
        )

    learning = Lines(
        title=texts("learning"),
        x=Axis(label=texts("step")),
        y=Axis(label=texts("loss"), least=0.0),
        places=tuple(float(i) for i in points),
        series=tuple(
            Series(name=texts(name), values=pick_steps(curve, points))
            for name, curve in numbers["curves"].items()
        ),
    )
    return Chart((bars("cached"), bars("right", most=1.0), learning))


EXPERIMENT = Experiment(
    name="latent",
    look_at=(
        "layers/latent_attention.py:LatentAttention",
        "models/variants.py:Latent",
        "school/lab/experiments/grouped.py:draw_recall",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
