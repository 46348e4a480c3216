"""A vision transformer: what it learns with positions and without, what it looks at and needs."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from glassformer.models import Config, Patches, Positions
from glassformer.models.config import Output
from glassformer.models.vision import VisionEncoder
from glassformer.render.chart import Axis, Bars, Chart, Lines, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.panels import choose_steps, pick_steps
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import Batch, accuracy, train_toy, warmup_cosine
from glassformer.school.shape_images import (
    IMAGE,
    N_PATCHES,
    NOISE,
    PATCH,
    ShapeImages,
    draw_shape_images,
)
from glassformer.tracing import watch


class _Size(NamedTuple):
    steps: int


_SIZES = {"quick": _Size(200), "full": _Size(400)}
_BATCH, _TESTS, _DIM, _HEADS, _CLASSES = 32, 128, 32, 2, 4
_HIDDEN = 4  # patches that are hidden: as many as a shape can cover
RUNS: dict[str, tuple[str, str]] = {  # the question, and how patches know their places
    "what": ("shapes", "learned"),
    "where": ("quadrants", "learned"),
    "where_bag": ("quadrants", "none"),
}


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Three models on the same images; then, what the first of them attends to and needs."""
    (steps,) = _SIZES[size]
    tests = draw_shape_images(torch.Generator().manual_seed(seed + 1), _TESTS)
    numbers: Numbers = {
        "steps": steps,
        "losses": {name: [] for name in RUNS},
        "right": {},
        "hidden": {},
        "chance": 1 / _CLASSES,
    }
    for name, own in iterate_with_progress(list(RUNS), progress, numbers):
        asked, positions = RUNS[name]
        torch.manual_seed(seed)
        model = _build(positions)

        def draw(generator: torch.Generator, asked: str = asked) -> Batch:
            drawn = draw_shape_images(generator, _BATCH)
            return drawn.images, getattr(drawn, asked)[:, None]

        train_toy(
            model,
            draw,
            steps=steps,
            schedule=warmup_cosine(1e-2, steps),
            seed=seed,
            progress=own,
            predict=lambda images, model=model: _answer(model, images),
            losses=numbers["losses"][name],
        )
        targets = getattr(tests, asked)[:, None]
        with torch.no_grad():
            numbers["right"][name] = accuracy(_answer(model, tests.images), targets)
        if name == "what":
            numbers |= _look(model, tests, numbers, seed)
    return numbers


def _answer(model: VisionEncoder, images: Tensor) -> Tensor:
    return model.classify(model(images))[:, None]  # B 1 n: one place to be right or wrong at


def _build(positions: Any) -> VisionEncoder:
    return VisionEncoder(
        Config(
            family="vision",
            vocab_size=1,
            dim=_DIM,
            n_layers=1,
            n_heads=_HEADS,
            hidden_dim=2 * _DIM,
            max_len=N_PATCHES + 1,
            patches=Patches(image_size=IMAGE, patch_size=PATCH, n_channels=1),
            positions=Positions(kind=positions),
            output=Output(classes=tuple(map(str, range(_CLASSES)))),
        )
    )


def _look(model: VisionEncoder, tests: ShapeImages, numbers: Numbers, seed: int) -> Numbers:
    """The class token's attention on the patches of the shape; accuracy without some patches."""
    with torch.no_grad(), watch(model) as trace:
        model(tests.images)
    (site,) = trace
    n = len(tests.images)
    by_head = [
        torch.stack([site.weights(head=head, sequence=i)[0, 1:] for i in range(n)])
        for head in range(_HEADS)
    ]
    weights = torch.stack(by_head).mean(0)  # B n_patches
    weights /= weights.sum(-1, keepdim=True)
    generator = torch.Generator().manual_seed(seed + 2)
    chosen = {
        "attended": weights.topk(_HIDDEN).indices,
        "random": torch.rand(weights.shape, generator=generator).topk(_HIDDEN).indices,
        "least": (-weights).topk(_HIDDEN).indices,
    }
    for name, patches in chosen.items():
        images = _hide(tests.images, patches, generator)
        with torch.no_grad():
            answers = _answer(model, images)
        numbers["hidden"][name] = accuracy(answers, tests.shapes[:, None])
    covered = tests.covered
    return {
        "attention": float((weights * covered).sum(-1).mean()),
        "area": float(covered.float().mean()),
    }


def _hide(images: Tensor, patches: Tensor, generator: torch.Generator) -> Tensor:
    """Nothing but noise in these patches of each image."""
    noise = NOISE * torch.randn(images.shape, generator=generator)
    grid = torch.zeros(len(images), N_PATCHES).scatter_(1, patches, 1.0)
    side = IMAGE // PATCH
    hidden = grid.reshape(-1, 1, side, side)
    hidden = hidden.repeat_interleave(PATCH, 2).repeat_interleave(PATCH, 3) > 0
    return torch.where(hidden, noise, images)


def judge(numbers: Numbers) -> Verdict:
    right, hidden = numbers["right"], numbers["hidden"]
    falls = {name: right["what"] - hidden[name] for name in hidden}
    return Verdict.of(
        Check(
            "learns",
            min(right["what"], right["where"]) > 0.7,
            {"what": right["what"], "where": right["where"]},
        ),
        # A bag of patches gives every place the same chance; 128 images scatter by 0.04 around it.
        Check(
            "bag",
            right["where_bag"] < numbers["chance"] + 0.15,
            {"where": right["where_bag"], "chance": numbers["chance"]},
        ),
        Check(
            "looks",
            numbers["attention"] > 2 * numbers["area"],
            {"attention": numbers["attention"], "area": numbers["area"]},
        ),
        Check(
            "needs",
            falls["attended"] > 0.3 and falls["least"] < falls["attended"] / 4,
            falls,
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    steps = choose_steps(numbers["steps"])
    curves = Lines(
        title=texts("losses"),
        x=Axis(label=texts("step")),
        y=Axis(label=texts("losses_axis"), least=0.0),
        places=tuple(steps),
        series=tuple(
            Series(name=texts(name), values=pick_steps(numbers["losses"][name], steps))
            for name in RUNS
        ),
    )
    return Chart(
        (
            curves,
            _bars("right", numbers["right"], numbers, texts),
            _bars("hidden", numbers["hidden"], numbers, texts),
        )
    )


def _bars(title: str, found: dict[str, float], numbers: Numbers, texts: ExperimentTexts) -> Bars:
    return Bars(
        title=texts(title),
        y=Axis(label=texts("accuracy"), least=0.0, most=1.0),
        names=tuple(texts(name) for name in found),
        series=(Series(name=texts("accuracy"), values=tuple(found.values())),),
        marks=(Mark(name=texts("chance"), at=numbers["chance"]),),
    )


EXPERIMENT = Experiment(
    name="vision",
    look_at=(
        "models/vision.py:VisionEncoder",
        "layers/patches.py:PatchEmbedding",
        "school/shape_images.py:draw_shape_images",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
