"""Label smoothing: how sure a model is of itself, against how often it is right."""

import itertools
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.models import Config, Decoder
from glassformer.render.chart import Axis, Bars, Chart, Lines, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import Batch, mean_loss, train_toy, warmup_cosine


class _Size(NamedTuple):
    steps: int
    smoothings: tuple[float, ...]


_SIZES = {"quick": _Size(220, (0.0, 0.2)), "full": _Size(400, (0.0, 0.05, 0.1, 0.2, 0.3))}
_VOCABULARY, _LENGTH, _TEXTS, _BATCH = 12, 17, 48, 16
_BINS = 10


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """A small model learns a few texts by heart, then meets fresh ones from the same source.

    The source is a chain: each token has its own distribution of what follows, which is known, so
    that the entropy a perfect model would have is known too.
    """
    steps, smoothings = _SIZES[size]
    # Some tokens are followed by almost anything, others by one or two.
    source = (2.0 * torch.randn(_VOCABULARY, _VOCABULARY)).softmax(-1)
    texts = _walk(source, _TEXTS)
    fresh = _walk(source, 256)
    true = source[fresh[:, :-1]]
    found: dict[str, list[float]] = {
        name: [] for name in ("entropy", "confidence", "right", "calibration", "loss")
    }
    bins: list[list[float | None]] = []
    numbers: Numbers = {
        "smoothings": list(smoothings),
        "true_entropy": float(-(true * true.log()).sum(-1).mean()),
        "bins": bins,
        **found,
    }
    for smoothing, own in iterate_with_progress(smoothings, progress, numbers):
        torch.manual_seed(seed)
        config = Config(
            family="decoder",
            vocab_size=_VOCABULARY,
            dim=48,
            n_layers=2,
            n_heads=4,
            max_len=_LENGTH,
        )
        model = Decoder(config)
        train_toy(
            model,
            lambda generator: _batch(texts, generator),
            steps=steps,
            schedule=warmup_cosine(3e-3, steps),
            seed=seed,
            progress=own,
            smoothing=smoothing,
        )
        with torch.no_grad():
            logits = model(fresh[:, :-1])
        shares = logits.softmax(-1)
        sure, guess = shares.max(-1)
        right = (guess == fresh[:, 1:]).float()
        found["entropy"].append(float(-(shares * shares.clamp(min=1e-12).log()).sum(-1).mean()))
        found["confidence"].append(float(sure.mean()))
        found["right"].append(float(right.mean()))
        found["loss"].append(float(mean_loss(logits, fresh[:, 1:])))
        each_bin, error = _calibration(sure.flatten(), right.flatten())
        bins.append(each_bin)
        found["calibration"].append(error)
    return numbers


def _walk(source: Tensor, n: int) -> Tensor:
    tokens = torch.randint(0, _VOCABULARY, (n, 1))
    for _ in range(_LENGTH - 1):
        tokens = torch.cat([tokens, torch.multinomial(source[tokens[:, -1]], 1)], 1)
    return tokens


def _batch(texts: Tensor, generator: torch.Generator) -> Batch:
    some = texts[torch.randint(0, len(texts), (_BATCH,), generator=generator)]
    return some[:, :-1], some[:, 1:]


def _calibration(sure: Tensor, right: Tensor) -> tuple[list[float | None], float]:
    """How often a model is right when it is this sure, and the mean distance between the two.

    Expected calibration error (Guo et al. 2017).
    """
    shares: list[float | None] = []
    error = 0.0
    for i in range(_BINS):
        inside = (sure > i / _BINS) & (sure <= (i + 1) / _BINS)
        if inside.sum() < 20:  # too few to speak of a frequency
            shares.append(None)
            continue
        shares.append(float(right[inside].mean()))
        error += float(inside.float().mean()) * abs(shares[-1] - float(sure[inside].mean()))  # type: ignore[operator]
    return shares, error


def judge(numbers: Numbers) -> Verdict:
    entropy, error = numbers["entropy"], numbers["calibration"]
    best = error.index(min(error))
    return Verdict.of(
        Check(
            "entropy",
            all(b > a for a, b in itertools.pairwise(entropy)),
            {
                "none": entropy[0],
                "most": entropy[-1],
                "smoothing": numbers["smoothings"][-1],
                "true": numbers["true_entropy"],
            },
        ),
        # The model learned few texts by heart and is surer than right without smoothing.
        Check(
            "sure",
            numbers["confidence"][0] > numbers["right"][0] + 0.05,
            {"confidence": numbers["confidence"][0], "right": numbers["right"][0]},
        ),
        # A fifth less is far above what 4096 fresh tokens leave to chance.
        Check(
            "calibration",
            error[best] < 0.8 * error[0],
            {"none": error[0], "best": error[best], "smoothing": numbers["smoothings"][best]},
        ),
        Check(
            "loss",
            min(numbers["loss"][1:]) < numbers["loss"][0],
            {"none": numbers["loss"][0], "best": min(numbers["loss"][1:])},
        ),
        # Being less sure should not cost being right: within what chance leaves, 3 %.
        Check(
            "right",
            min(numbers["right"]) > numbers["right"][0] - 0.03,
            {"none": numbers["right"][0], "least": min(numbers["right"])},
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    names = tuple(texts("smoothing", s=s) for s in numbers["smoothings"])
    return Chart(
        (
            Bars(
                title=texts("calibration"),
                y=Axis(label=texts("error")),
                names=names,
                series=(Series(name=texts("error"), values=tuple(numbers["calibration"])),),
            ),
            Bars(
                title=texts("entropy"),
                y=Axis(label=texts("nats")),
                names=names,
                series=(Series(name=texts("nats"), values=tuple(numbers["entropy"])),),
                marks=(Mark(name=texts("true"), at=numbers["true_entropy"]),),
            ),
            Lines(
                title=texts("reliability"),
                x=Axis(label=texts("sure"), least=0.0, most=1.0),
                y=Axis(label=texts("right"), least=0.0, most=1.0),
                places=tuple((i + 0.5) / _BINS for i in range(_BINS)),
                series=(
                    *(
                        Series(name=name, values=tuple(shares))
                        for name, shares in zip(names, numbers["bins"], strict=False)
                    ),
                    Series(
                        name=texts("honest"), values=tuple((i + 0.5) / _BINS for i in range(_BINS))
                    ),
                ),
            ),
        )
    )


EXPERIMENT = Experiment(
    name="smoothing",
    look_at=("training/loss.py:cross_entropy_sum",),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
