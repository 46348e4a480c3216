"""Induction heads: when they form in training, why one layer has none, what they are needed for."""

import statistics
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from glassformer.analysis import roles
from glassformer.models import Config, Decoder, Positions
from glassformer.render.chart import Axis, Bars, Chart, Lines, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.experiments.heads import draw_repeating
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import Batch, accuracy, train_toy, warmup_cosine
from glassformer.tracing import Ablate, change, watch


class _Size(NamedTuple):
    steps: int


_SIZES = {"quick": _Size(300), "full": _Size(500)}
_LENGTH, _VOCABULARY, _PERIODS = 32, 16, (4, 12)
_LEAST_ROLE = 0.3  # as in analysis/head_roles: below it a head has no role of its own
_PLACES = 15  # of the training at which heads are looked at
LAYERS = {"one": 1, "two": 2}


class _NoFeedForward(nn.Module):
    """Adds nothing to the residual stream: what is learned is learned by attention."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """One layer and two on the same texts; heads are scored along the way, and then removed."""
    (steps,) = _SIZES[size]
    every = steps // _PLACES
    numbers: Numbers = {
        "places": list(range(every, steps + 1, every)),
        "losses": {name: [] for name in LAYERS},
        "scores": {name: [] for name in LAYERS},
        "right": {},
        "removed": {},
        "chance": 1 / _VOCABULARY,
    }
    tokens, targets = _draw(torch.Generator().manual_seed(seed + 1), n=32)
    for name, own in iterate_with_progress(list(LAYERS), progress, numbers):
        torch.manual_seed(seed)
        model = _build(LAYERS[name])
        recent: list[float] = []

        def look(
            share: float,
            model: Decoder = model,
            name: str = name,
            recent: list[float] = recent,
            own: ProgressCallback = own,
        ) -> None:
            if len(recent) % every == 0:
                numbers["losses"][name].append(statistics.fmean(recent[-every:]))
                numbers["scores"][name].append(max(_score_heads(model, tokens)))
            own(share)

        train_toy(
            model,
            lambda generator: _draw(generator, n=16),
            steps=steps,
            schedule=warmup_cosine(4e-3, steps),
            seed=seed,
            progress=_Report(look),
            losses=recent,
        )
        with torch.no_grad():
            numbers["right"][name] = accuracy(model(tokens), targets)
        if name == "two":
            numbers["removed"] = _remove_heads(model, tokens, targets)
    return numbers


class _Report:
    """A progress callback around a function of the share alone."""

    def __init__(self, look: Any) -> None:
        self.look = look

    def __call__(self, share: float | int, numbers: dict[str, Any] | None = None, /) -> None:
        del numbers
        self.look(share)


def _draw(generator: torch.Generator, *, n: int) -> Batch:
    return draw_repeating(generator, n=n, length=_LENGTH, vocab_size=_VOCABULARY, periods=_PERIODS)


def _build(n_layers: int) -> Decoder:
    model = Decoder(
        Config(
            family="decoder",
            vocab_size=_VOCABULARY,
            dim=64,
            n_layers=n_layers,
            n_heads=8,
            hidden_dim=8,
            max_len=_LENGTH,
            positions=Positions(kind="alibi"),
        )
    )
    for block in model.decoder.blocks:
        block.feed_forward = _NoFeedForward()  # type: ignore[union-attr]
    return model


def _score_heads(model: Decoder, tokens: Tensor, n: int = 4) -> list[float]:
    """The induction score of each head of the last layer, on average over n texts."""
    with torch.no_grad(), watch(model) as trace:
        model(tokens[:n])
    site = trace[f"decoder.{model.config.n_layers - 1}.self"]
    by_text = [roles(site, tokens[i], sequence=i) for i in range(n)]
    heads = zip(*by_text, strict=True)
    return [statistics.fmean(role.scores["induction"] for role in head) for head in heads]


def _remove_heads(model: Decoder, tokens: Tensor, targets: Tensor) -> dict[str, Any]:
    """Accuracy without the induction heads, and without as many others of the same layer."""
    scores = _score_heads(model, tokens, n=8)
    ranked = sorted(range(len(scores)), key=lambda head: -scores[head])
    n = min(max(sum(score >= _LEAST_ROLE for score in scores), 1), len(scores) // 2)
    found: dict[str, Any] = {"n": n}
    for name, chosen in (("induction", ranked[:n]), ("others", ranked[-n:])):
        removed = [Ablate("decoder.1.self", head=head) for head in chosen]
        with torch.no_grad(), change(model, removed):
            found[name] = accuracy(model(tokens), targets)
    return found


def judge(numbers: Numbers) -> Verdict:
    right, scores, removed = numbers["right"], numbers["scores"], numbers["removed"]
    drops = {name: right["two"] - removed[name] for name in ("induction", "others")}
    together = statistics.correlation(numbers["losses"]["two"], scores["two"])
    return Verdict.of(
        # Half right can be had by knowing which words occur and which were just said.
        Check("two", right["two"] > 0.8 and right["one"] < 0.6, dict(right)),
        Check(
            "formed",
            scores["two"][-1] >= _LEAST_ROLE
            and scores["two"][0] < 0.1
            and max(scores["one"]) < _LEAST_ROLE,
            {"first": scores["two"][0], "last": scores["two"][-1], "one": max(scores["one"])},
        ),
        Check("together", together < -0.8, {"correlation": together}),
        Check(
            "needed",
            drops["induction"] > 0.3 and drops["others"] < drops["induction"] / 2,
            {"n": removed["n"], **drops},
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    def panel(what: str, **marks: Any) -> Lines:
        return Lines(
            title=texts(what),
            x=Axis(label=texts("step")),
            y=Axis(label=texts(f"{what}_axis"), least=0.0),
            places=tuple(numbers["places"]),
            series=tuple(
                Series(name=texts(name), values=tuple(numbers[what][name])) for name in LAYERS
            ),
            **marks,
        )

    removed = numbers["removed"]
    bars = Bars(
        title=texts("removed"),
        y=Axis(label=texts("right"), least=0.0, most=1.0),
        names=tuple(texts(name) for name in ("induction", "others") if name in removed),
        series=(
            Series(
                name=texts("right"),
                values=tuple(removed[name] for name in ("induction", "others") if name in removed),
            ),
        ),
        marks=(Mark(name=texts("chance"), at=numbers["chance"]),),
    )
    role = Mark(name=texts("role"), at=_LEAST_ROLE)
    return Chart((panel("losses"), panel("scores", marks=(role,)), bars))


EXPERIMENT = Experiment(
    name="induction",
    look_at=(
        "analysis/head_roles.py:roles",
        "school/lab/experiments/heads.py:draw_repeating",
        "tracing/context.py:watch",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
