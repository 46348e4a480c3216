"""Scaling laws: a ladder of tiny language models on letters, a curve through it, the next rung."""

import itertools
import math
import re
import statistics
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

import torch
from torch import Tensor, nn

from glassformer.models.parameters import count_parameters
from glassformer.render.chart import Axis, Chart, Lines, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.panels import choose_steps, pick_steps
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import Batch, mean_loss, train_toy, warmup_cosine


class _Size(NamedTuple):
    steps: int


class Law(NamedTuple):
    """L(N) = floor + scale / N^exponent."""

    floor: float
    scale: float
    exponent: float

    def loss(self, size: float | int) -> float:
        return self.floor + self.scale / size**self.exponent


_SIZES = {"quick": _Size(400), "full": _Size(800)}
WIDTHS = (4, 8, 16, 32, 64, 128)  # of the hidden layer; the last is predicted
_CONTEXT, _EMBEDDING, _LETTERS, _BATCH = 4, 8, 27, 512
_HELD, _TESTS = 0.2, 6000
_EXPONENTS = [0.02 * 1.05**i for i in range(90)]  # up to about 1.5
_NEARLY = 0.01  # nats: curves whose error is larger by no more fit nearly as well
_MARKUP = re.compile(r"```.*?```|\{\{.*?\}\}|\(https?:[^)]*\)", re.DOTALL)


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Train every width on the same batches, then read held-out text."""
    (steps,) = _SIZES[size]
    text, held = _split_letters(seed)
    tests, targets = _cut(held, torch.Generator().manual_seed(seed + 1), _TESTS)
    training: dict[str, list[float]] = {str(width): [] for width in WIDTHS}
    numbers: Numbers = {
        "steps": steps,
        "parameters": [count_parameters(_build(width)) for width in WIDTHS],
        "training": training,
        "losses": [],
    }
    for width, own in iterate_with_progress(WIDTHS, progress, numbers):
        torch.manual_seed(seed)
        model = _build(width)

        def predict(tokens: Tensor, model: nn.Module = model) -> Tensor:
            return model(tokens)[:, None]  # the letter after the context

        train_toy(
            model,
            lambda generator: _cut(text, generator, _BATCH),
            steps=steps,
            schedule=warmup_cosine(0.02, steps),
            seed=seed,
            progress=own,
            predict=predict,
            losses=training[str(width)],
        )
        with torch.no_grad():
            numbers["losses"].append(mean_loss(predict(tests), targets).item())
    return numbers


def _build(width: int) -> nn.Module:
    """A feed-forward language model that sees the last letters (Bengio et al. 2003)."""
    return nn.Sequential(
        nn.Embedding(_LETTERS, _EMBEDDING),
        nn.Flatten(),
        nn.Linear(_CONTEXT * _EMBEDDING, width),
        nn.GELU(),
        nn.Linear(width, _LETTERS),
    )


def _split_letters(seed: int) -> tuple[Tensor, Tensor]:
    """The letters of the English course, and those of some chapters that are held out."""
    folder = files("glassformer.course").joinpath("chapters", "en")
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".md")), key=str)
    texts = [_MARKUP.sub(" ", file.read_text("utf-8")) for file in found]
    order = torch.randperm(len(texts), generator=torch.Generator().manual_seed(seed)).tolist()
    n_held = round(_HELD * len(texts))

    def encode(chosen: list[int]) -> Tensor:
        text = " ".join(re.sub(r"[^a-z]+", " ", texts[i].lower()) for i in chosen)
        return torch.tensor([0 if sign == " " else ord(sign) - ord("a") + 1 for sign in text])

    return encode(order[n_held:]), encode(order[:n_held])


def _cut(text: Tensor, generator: torch.Generator, n: int) -> Batch:
    """Contexts, and the letter that follows each of them."""
    starts = torch.randint(len(text) - _CONTEXT, (n, 1), generator=generator)
    tokens = text[starts + torch.arange(_CONTEXT + 1)]
    return tokens[:, :-1], tokens[:, -1:]


def fit_laws(sizes: Sequence[float | int], losses: Sequence[float]) -> list[Law]:
    """The law with the least squared error, and then all that fit nearly as well.

    For each exponent the floor and the scale are a linear regression; a floor below 0 is no floor.

    >>> [round(number, 2) for number in fit_laws([4, 16, 64], [6.0, 4.0, 3.0])[0]]
    [2.0, 8.0, 0.5]
    """
    found = []
    for exponent in _EXPONENTS:
        terms = [size**-exponent for size in sizes]
        scale, floor = statistics.linear_regression(terms, losses)
        law = Law(floor, scale, exponent)
        errors = [law.loss(n) - loss for n, loss in zip(sizes, losses, strict=True)]
        if floor >= 0:
            found.append((math.sqrt(statistics.fmean(error**2 for error in errors)), law))
    found.sort()
    return [law for error, law in found if error <= found[0][0] + _NEARLY]


def judge(numbers: Numbers) -> Verdict:
    sizes, losses = numbers["parameters"], numbers["losses"]
    laws = fit_laws(sizes[:-1], losses[:-1])
    predicted = laws[0].loss(sizes[-1])
    ahead, floors = [law.loss(sizes[-1]) for law in laws], [law.floor for law in laws]
    falls = [before - after for before, after in itertools.pairwise(losses)]
    return Verdict.of(
        # What there is to predict is the last fall; half of it is more than a guess.
        Check(
            "predicts",
            abs(predicted - losses[-1]) < falls[-1] / 2,
            {"predicted": predicted, "measured": losses[-1], "before": losses[-2]},
        ),
        Check(
            "falls",
            min(falls) > 0.02,
            {"first": losses[0], "last": losses[-1], "least": min(falls)},
        ),
        Check(
            "loose",
            max(floors) - min(floors) > 5 * (max(ahead) - min(ahead)),
            {
                "low": min(floors),
                "high": max(floors),
                "low_ahead": min(ahead),
                "high_ahead": max(ahead),
            },
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    sizes, losses = numbers["parameters"], numbers["losses"]
    curve: tuple[float, ...] = ()
    if len(losses) >= len(WIDTHS) - 1:
        law = fit_laws(sizes[:-1], losses[: len(WIDTHS) - 1])[0]
        curve = tuple(law.loss(size) for size in sizes)
    ladder = Lines(
        title=texts("ladder"),
        x=Axis(label=texts("parameters"), log=True),
        y=Axis(label=texts("nats")),
        places=tuple(sizes),
        series=(
            Series(name=texts("measured"), values=tuple(losses)),
            Series(name=texts("fitted"), values=curve),
        ),
    )
    steps = choose_steps(numbers["steps"])
    training = Lines(
        title=texts("training"),
        x=Axis(label=texts("step")),
        y=Axis(label=texts("training_axis")),
        places=tuple(steps),
        series=tuple(
            Series(name=texts("size", n=size), values=pick_steps(found, steps))
            for size, found in zip(sizes, numbers["training"].values(), strict=True)
        ),
    )
    return Chart((ladder, training))


EXPERIMENT = Experiment(
    name="power-law",
    look_at=(
        "school/lab/experiments/power_law.py:fit_laws",
        "school/lab/toy_training.py:train_toy",
        "models/parameters.py:count_parameters",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
