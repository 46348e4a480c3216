"""Warm-up: a deep post-norm stack with and without it, and a pre-norm stack beside it."""

from typing import NamedTuple

import torch

from glassformer.layers.block import NormPlace
from glassformer.models import Config, Decoder, Norms
from glassformer.render.chart import Axis, Chart, Lines, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.panels import choose_steps, pick_steps
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import Batch, train_toy
from glassformer.training import Schedule
from glassformer.training.loss import IGNORED


class _Size(NamedTuple):
    depth: int
    steps: int


_SIZES = {"quick": _Size(12, 160), "full": _Size(12, 200)}
_CASES: tuple[tuple[NormPlace, bool], ...] = (
    ("post", False),
    ("post", True),
    ("pre", False),
    ("pre", True),
)
_VOCABULARY, _LENGTH, _BATCH, _RATE = 12, 16, 16, 6e-3


def draw_previous(generator: torch.Generator) -> Batch:
    """Each place asks for the token before it."""
    tokens = torch.randint(0, _VOCABULARY, (_BATCH, _LENGTH), generator=generator)
    targets = torch.full_like(tokens, IGNORED)
    targets[:, 1:] = tokens[:, :-1]
    return tokens, targets


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """The same models, data and highest rate; only the way up differs."""
    depth, steps = _SIZES[size]
    curves: dict[str, list[float]] = {_name(*case): [] for case in _CASES}
    numbers: Numbers = {"depth": depth, "steps": steps, "rate": _RATE, "curves": curves}
    for (place, warm), own in iterate_with_progress(_CASES, progress, numbers):
        torch.manual_seed(seed)
        config = Config(
            family="decoder",
            vocab_size=_VOCABULARY,
            dim=32,
            n_layers=depth,
            n_heads=4,
            hidden_dim=64,
            max_len=_LENGTH,
            norms=Norms(place=place, final=place == "pre"),
            scaled_embedding=True,
        )
        train_toy(
            Decoder(config),
            draw_previous,
            steps=steps,
            schedule=Schedule(kind="constant", lr=_RATE, warmup=steps // 3 if warm else 0),
            seed=seed,
            progress=own,
            clip=0.0,  # clipping is another remedy for the same illness
            losses=curves[_name(place, warm)],
        )
    return numbers


def _name(place: str, warm: bool) -> str:
    return f"{place}_{'warm' if warm else 'cold'}"


def judge(numbers: Numbers) -> Verdict:
    guess = float(torch.tensor(float(_VOCABULARY)).log())
    ends = {name: sum(curve[-10:]) / 10 for name, curve in numbers["curves"].items()}
    # A loss within 5 % of guessing: the stack has learned nothing at all.
    stuck = 0.95 * guess
    return Verdict.of(
        Check(
            "post",
            ends["post_cold"] > ends["post_warm"] + 0.3,
            {"cold": ends["post_cold"], "warm": ends["post_warm"], "guess": guess},
        ),
        Check(
            "stuck",
            ends["post_cold"] > stuck > ends["post_warm"],
            {"cold": ends["post_cold"], "warm": ends["post_warm"], "stuck": stuck},
        ),
        # Pre-norm needs none: it learns without, and warm-up wins it little.
        Check(
            "pre",
            ends["pre_cold"] < min(stuck, ends["pre_warm"] + 0.3),
            {"cold": ends["pre_cold"], "warm": ends["pre_warm"]},
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    points = choose_steps(numbers["steps"])
    return Chart(
        (
            Lines(
                title=texts("learning", depth=numbers["depth"]),
                x=Axis(label=texts("step")),
                y=Axis(label=texts("loss"), least=0.0),
                places=tuple(float(i) for i in points),
                series=tuple(
                    Series(
                        name=texts(name),
                        # At most 4: a stack that diverges must not flatten the others.
                        values=tuple(min(4.0, loss) for loss in pick_steps(curve, points)),
                    )
                    for name, curve in numbers["curves"].items()
                ),
                marks=(
                    Mark(name=texts("guessing"), at=float(torch.tensor(float(_VOCABULARY)).log())),
                ),
            ),
        )
    )


EXPERIMENT = Experiment(
    name="warmup",
    look_at=("training/schedule.py:Schedule", "layers/block.py:Block"),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
