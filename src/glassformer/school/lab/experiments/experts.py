"""Mixtures of experts with and without load balancing: what becomes of the load, and its price."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from glassformer.models import Config, Decoder, Experts, Positions, watch_routing
from glassformer.models.routing import RoutedLayer
from glassformer.render.chart import Axis, Bars, Chart, Lines, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.panels import choose_steps, pick_steps
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import Batch, mean_loss, train_toy, warmup_cosine
from glassformer.training.loss import IGNORED


class _Size(NamedTuple):
    steps: int


_SIZES = {"quick": _Size(150), "full": _Size(400)}
_WORDS, _DIALECTS, _LENGTH, _BATCH = 64, 4, 24, 16
_DIM, _HEADS, _HIDDEN, _EXPERTS = 32, 4, 8, 16
_BALANCE, _RATE, _CAPACITY = 0.1, 0.02, 1.25
WAYS = ("none", "loss", "bias")


def draw_dialects(generator: torch.Generator, table: Tensor, *, n: int = _BATCH) -> Batch:
    """A mark for a dialect, then random words, whose translations are the targets.

    What is to be known is a table of dialects and words, which feed-forward networks store.
    """
    dialect = torch.randint(_DIALECTS, (n, 1), generator=generator)
    words = torch.randint(_WORDS, (n, _LENGTH - 1), generator=generator)
    tokens = torch.cat([_WORDS + dialect, words], dim=1)
    targets = torch.full_like(tokens, IGNORED)
    targets[:, 1:] = table[dialect, words]
    return tokens, targets


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """The same texts for three mixtures: left alone, with a loss, and with a bias that balance."""
    (steps,) = _SIZES[size]
    numbers: Numbers = {
        "steps": steps,
        "experts": _EXPERTS,
        "losses": {name: [] for name in WAYS},
        "shares": {},
        "final": {},
        "dropped": {},
        "agree": {},
    }
    generator = torch.Generator().manual_seed(seed)
    table = torch.randint(_WORDS, (_DIALECTS, _WORDS), generator=generator)
    tokens, targets = draw_dialects(generator, table, n=128)
    for name, own in iterate_with_progress(list(WAYS), progress, numbers):
        torch.manual_seed(seed)
        model = _build(name)
        _train(model, name, partial(draw_dialects, table=table), steps, seed, own, numbers)
        with torch.no_grad(), watch_routing(model) as routing:
            numbers["final"][name] = float(mean_loss(model(tokens), targets))
        (layer,) = routing.values()
        numbers["shares"][name] = layer.shares.sort(descending=True).values.tolist()
        numbers["dropped"][name] = _count_dropped(layer)
        numbers["agree"][name] = _compare_labels(layer, tokens)
    return numbers


def _build(name: str) -> Decoder:
    mixture = Experts(
        n_experts=_EXPERTS,
        n_active=1,
        hidden_dim=_HIDDEN,
        normalization="all",  # with one expert and "chosen" the router would have no gradient
        selection_bias=name == "bias",
    )
    return Decoder(
        Config(
            family="decoder",
            vocab_size=_WORDS + _DIALECTS,
            dim=_DIM,
            n_layers=1,
            n_heads=_HEADS,
            hidden_dim=_HIDDEN,
            max_len=_LENGTH,
            positions=Positions(kind="rotary"),
            experts=mixture,
        )
    )


def _train(
    model: Decoder,
    name: str,
    draw_batch: Callable[[torch.Generator], Batch],
    steps: int,
    seed: int,
    progress: ProgressCallback,
    numbers: Numbers,
) -> None:
    passes: list[RoutedLayer] = []

    def predict(tokens: Tensor) -> Tensor:
        with watch_routing(model) as routing:
            logits = model(tokens)
        (layer,) = routing.values()
        passes[:] = [layer]
        if name == "bias":  # Wang et al. 2024: a fixed step up for those with too few tokens
            bias = model.decoder.blocks[0].feed_forward.router.selection_bias  # type: ignore[union-attr]
            bias += _RATE * (1 / _EXPERTS - layer.shares).sign()  # type: ignore[operator]
        return logits

    train_toy(
        model,
        draw_batch,
        steps=steps,
        schedule=warmup_cosine(8e-3, steps),
        seed=seed,
        progress=progress,
        predict=predict,
        losses=numbers["losses"][name],
        extra_loss=(lambda: _BALANCE * passes[0].balance_loss()) if name == "loss" else None,
    )


def _count_dropped(layer: RoutedLayer) -> float:
    """The share of tokens beyond the capacity of their expert, were there one."""
    load = layer.load
    capacity = _CAPACITY * float(load.sum()) / _EXPERTS
    return float((load - capacity).clamp(min=0).sum() / load.sum())


def _compare_labels(layer: RoutedLayer, tokens: Tensor) -> dict[str, float]:
    """How often a token goes to the usual expert of its word and of its dialect, beyond chance.

    Few tokens of a label agree by chance more often; chance is what shuffled choices give.
    """
    chosen = layer.experts[:, 0].view(tokens.shape)[:, 1:].flatten()
    order = torch.randperm(len(chosen), generator=torch.Generator().manual_seed(0))
    words = tokens[:, 1:].flatten()
    dialects = (tokens[:, :1] - _WORDS).expand(-1, _LENGTH - 1).flatten()
    return {
        name: _agree(labels, chosen) - _agree(labels, chosen[order])
        for name, labels in (("word", words), ("dialect", dialects))
    }


def _agree(labels: Tensor, chosen: Tensor) -> float:
    counts = (labels * _EXPERTS + chosen).bincount(minlength=_WORDS * _EXPERTS)
    return float(counts.view(-1, _EXPERTS).amax(1).sum() / counts.sum())


def _count_starved(shares: list[float]) -> int:
    """Experts with less than a quarter of an even share."""
    return sum(share < 0.25 / len(shares) for share in shares)


def judge(numbers: Numbers) -> Verdict:
    shares, final, dropped = numbers["shares"], numbers["final"], numbers["dropped"]
    starved = {name: _count_starved(shares[name]) for name in WAYS}
    agree = numbers["agree"]["loss"]
    return Verdict.of(
        Check(
            "load",
            starved["none"] >= 1 and starved["loss"] == starved["bias"] == 0,
            {"experts": numbers["experts"], **starved},
        ),
        Check(
            "dropped",
            dropped["none"] > max(0.05, 3 * dropped["loss"], 3 * dropped["bias"]),
            dict(dropped),
        ),
        Check("price", max(final["loss"], final["bias"]) < final["none"] + 0.1, dict(final)),
        Check("special", agree["word"] > 2 * agree["dialect"], dict(agree)),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    steps = choose_steps(numbers["steps"])
    losses = Lines(
        title=texts("losses"),
        x=Axis(label=texts("step")),
        y=Axis(label=texts("losses_axis"), least=0.0),
        places=tuple(step + 1 for step in steps),
        series=tuple(
            Series(
                name=texts(name), values=_fill(pick_steps(numbers["losses"][name], steps), steps)
            )
            for name in WAYS
        ),
    )
    places = range(1, numbers["experts"] + 1)
    shares = Lines(
        title=texts("shares"),
        x=Axis(label=texts("expert")),
        y=Axis(label=texts("share"), least=0.0),
        places=tuple(places),
        series=tuple(
            Series(name=texts(name), values=_fill(numbers["shares"].get(name, ()), places))
            for name in WAYS
        ),
        marks=(Mark(name=texts("even"), at=1 / numbers["experts"]),),
    )
    known = [name for name in WAYS if name in numbers["dropped"]]
    dropped = Bars(
        title=texts("dropped"),
        y=Axis(label=texts("share_of_tokens"), least=0.0),
        names=tuple(texts(name) for name in known),
        series=(
            Series(
                name=texts("share_of_tokens"),
                values=tuple(numbers["dropped"][name] for name in known),
            ),
        ),
    )
    return Chart((losses, shares, dropped))


def _fill(values: Any, places: Any) -> tuple[float | None, ...]:
    return (*values, *[None] * (len(places) - len(values)))


EXPERIMENT = Experiment(
    name="experts",
    look_at=(
        "layers/experts.py:Router",
        "layers/experts.py:MixtureOfExperts",
        "models/routing.py:RoutedLayer",
        "models/routing.py:watch_routing",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
