"""Embeddings: what training makes of them, tied to the output or not, scaled by √dim or not."""

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.models import Config, Decoder, Positions
from glassformer.models.config import Output
from glassformer.render.chart import Axis, Bars, Chart, Lines, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.panels import choose_steps, pick_steps
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import Batch, train_toy, warmup_cosine


class _Size(NamedTuple):
    steps: int


_SIZES = {"quick": _Size(300), "full": _Size(500)}
_CLASSES, _WORDS, _LENGTH, _BATCH, _DIM = 4, 6, 24, 16, 64
_VOCABULARY = _CLASSES * _WORDS
_USUAL = 0.8  # how often the usual class follows, rather than the one after it
# Nothing predicts which word of a class follows, so no model gets below this.
_LEAST_LOSS = math.log(_WORDS) - _USUAL * math.log(_USUAL) - (1 - _USUAL) * math.log(1 - _USUAL)
WAYS: dict[str, dict[str, Any]] = {
    "untied": {"scaled": True, "tied": False, "positions": "sinusoidal"},
    "tied": {"scaled": True, "tied": True, "positions": "sinusoidal"},
    "unscaled": {"scaled": False, "tied": True, "positions": "sinusoidal"},
    "small_positions": {"scaled": False, "tied": True, "positions": "learned"},
}
_LEARNING = ("untied", "tied", "small_positions")


def draw_classes(generator: torch.Generator) -> Batch:
    """Texts in which only the class of a word matters: any word of a class may take its place."""
    first = torch.randint(_CLASSES, (_BATCH, 1), generator=generator)
    usual = torch.rand(_BATCH, _LENGTH, generator=generator) < _USUAL
    classes = torch.cat([first, torch.where(usual, 1, 2)], dim=1).cumsum(1) % _CLASSES
    words = torch.randint(_WORDS, classes.shape, generator=generator)
    tokens = classes + _CLASSES * words  # (B, L + 1)
    return tokens[:, :-1], tokens[:, 1:]


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """The same texts for every model; then, how alike the embeddings of words are."""
    (steps,) = _SIZES[size]
    losses: dict[str, list[float]] = {name: [] for name in WAYS}
    alike: dict[str, dict[str, float]] = {}
    numbers: Numbers = {
        "steps": steps,
        "losses": losses,
        "alike": alike,
        "before": {},
        "parameters": {},
        "table": _VOCABULARY * _DIM,
    }
    for name, own in iterate_with_progress(list(WAYS), progress, numbers):
        torch.manual_seed(seed)
        model = Decoder(_config(**WAYS[name]))
        numbers["parameters"][name] = sum(p.numel() for p in model.parameters())
        numbers["before"][name] = _compare_classes(model.embedding.weight)
        train_toy(
            model,
            draw_classes,
            steps=steps,
            schedule=warmup_cosine(4e-3, steps),
            seed=seed,
            progress=own,
            losses=losses[name],
        )
        alike[name] = _compare_classes(model.embedding.weight)
    return numbers


def _config(*, scaled: bool, tied: bool, positions: Any) -> Config:
    return Config(
        family="decoder",
        vocab_size=_VOCABULARY,
        dim=_DIM,
        n_layers=1,
        n_heads=4,
        hidden_dim=_DIM,
        max_len=_LENGTH,
        positions=Positions(kind=positions),
        output=Output(tied=tied),
        scaled_embedding=scaled,
    )


def _compare_classes(weight: Tensor) -> dict[str, float]:
    """The mean cosine of two words of one class, and of two classes; around their common mean."""
    centred = weight.detach() - weight.detach().mean(dim=0)
    directions = F.normalize(centred, dim=-1)
    cosines = directions @ directions.T
    classes = torch.arange(_VOCABULARY) % _CLASSES
    same = classes[:, None] == classes
    pairs = ~torch.eye(_VOCABULARY, dtype=torch.bool)
    return {"same": float(cosines[same & pairs].mean()), "other": float(cosines[~same].mean())}


def _final_loss(numbers: Numbers, name: str) -> float:
    last = numbers["losses"][name][-20:]
    return sum(last) / len(last)


def judge(numbers: Numbers) -> Verdict:
    alike, before, parameters = numbers["alike"], numbers["before"], numbers["parameters"]
    gaps = {name: alike[name]["same"] - alike[name]["other"] for name in WAYS}
    first = max(abs(before[name]["same"] - before[name]["other"]) for name in WAYS)
    final = {name: _final_loss(numbers, name) for name in WAYS}
    least = min(gaps[name] for name in _LEARNING)
    return Verdict.of(
        # Random vectors of width 64 have cosines of about ±0.12; means of many are near 0.
        Check("alike", least > 0.3 and first < 0.1, {"before": first, "after": least}),
        Check(
            "tied",
            parameters["untied"] - parameters["tied"] == numbers["table"]
            and final["tied"] < _LEAST_LOSS + 0.1,
            {
                "saved": parameters["untied"] - parameters["tied"],
                "tied": final["tied"],
                "untied": final["untied"],
                "least": _LEAST_LOSS,
            },
        ),
        # Guessing among all words gives log 24 = 3.18; nine tenths of the way are not made.
        Check(
            "drowned",
            final["unscaled"] > _LEAST_LOSS + 0.9 * (math.log(_VOCABULARY) - _LEAST_LOSS),
            {"loss": final["unscaled"], "guessing": math.log(_VOCABULARY)},
        ),
        Check(
            "small_positions",
            final["small_positions"] < _LEAST_LOSS + 0.1,
            {"loss": final["small_positions"], "least": _LEAST_LOSS},
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    steps = choose_steps(numbers["steps"])
    alike = numbers["alike"]
    curves = Lines(
        title=texts("loss"),
        x=Axis(label=texts("step")),
        y=Axis(label=texts("loss_axis"), least=2.0, most=4.0),
        places=tuple(steps),
        series=tuple(
            Series(name=texts(name), values=pick_steps(numbers["losses"][name], steps))
            for name in WAYS
        ),
        marks=(
            Mark(name=texts("least"), at=_LEAST_LOSS),
            Mark(name=texts("guessing"), at=math.log(_VOCABULARY)),
        ),
    )
    cosines = Bars(
        title=texts("cosine"),
        y=Axis(label=texts("cosine_axis")),
        names=tuple(texts(name) for name in alike),
        series=tuple(
            Series(name=texts(pair), values=tuple(found[pair] for found in alike.values()))
            for pair in ("same", "other")
        ),
    )
    return Chart((curves, cosines))


EXPERIMENT = Experiment(
    name="embeddings",
    look_at=(
        "layers/embedding.py:TokenEmbedding",
        "models/output_heads.py:NextTokenHead",
        "models/config.py:Output",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
