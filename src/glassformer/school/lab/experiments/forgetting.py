"""Fine-tuning on something new: what it does to what a model knew, and what prevents it."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from glassformer.models import Config, Decoder, Positions, add_lora
from glassformer.models.lora import remove_lora
from glassformer.render.chart import Axis, Bars, Chart, Lines, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.progress import ProgressCallback, sub_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import Batch, accuracy, train_toy, warmup_cosine
from glassformer.training.loss import IGNORED


class _Size(NamedTuple):
    steps: int  # of the first training, and of each fine-tuning


_SIZES = {"quick": _Size(100), "full": _Size(300)}
_LETTERS, _LENGTH, _BATCH, _DIM = 16, 12, 16, 48
_USUAL = 0.8  # how often the letter follows that the language prescribes
_PLACES = 10  # of each fine-tuning at which both languages are tested
_REPLAYED = 0.5  # the share of old texts in a batch, where there are any
_RANK = 4
_RATE = 1e-2
WAYS = ("full", "replay", "lora")
LANGUAGES = ("old", "new")
# The likeliest next letter is right so often, and no model can do better.
_BEST = _USUAL + (1 - _USUAL) / _LETTERS


class _Languages:
    """Two languages of the same letters: in each, another letter usually follows a letter.

    The first token of a text says which language it is.
    """

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(1000 + seed)
        self.next = torch.stack([torch.randperm(_LETTERS, generator=generator) for _ in LANGUAGES])

    def draw(self, language: Tensor, generator: torch.Generator) -> Batch:
        """Texts of the languages 0 and 1: (B,) → tokens and targets, (B, L) each."""
        n = len(language)
        letters = [torch.randint(_LETTERS, (n,), generator=generator)]
        for _ in range(_LENGTH):
            usual = torch.rand(n, generator=generator) < _USUAL
            other = torch.randint(_LETTERS, (n,), generator=generator)
            letters.append(torch.where(usual, self.next[language, letters[-1]], other))
        text = torch.stack(letters, dim=1)
        tokens = torch.cat([_LETTERS + language[:, None], text], dim=1)
        targets = tokens[:, 1:].clone()
        targets[:, 0] = IGNORED  # nothing predicts the first letter
        return tokens[:, :-1], targets


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Learn one language, then the other in three ways; test both along the way."""
    (steps,) = _SIZES[size]
    every = steps // _PLACES
    languages = _Languages(seed)
    tests = [_test_set(languages, i, seed) for i in range(len(LANGUAGES))]
    base = _build(seed)
    train_toy(
        base,
        lambda generator: languages.draw(torch.zeros(_BATCH, dtype=torch.long), generator),
        steps=steps,
        schedule=warmup_cosine(_RATE, steps),
        seed=seed,
        progress=sub_progress(progress, 0.0, 0.25),
    )
    before = [_score(base, test) for test in tests]
    numbers: Numbers = {
        "places": list(range(0, steps + 1, every)),
        "best": _BEST,
        "before": dict(zip(LANGUAGES, before, strict=True)),
        "right": {way: {"old": [before[0]], "new": [before[1]]} for way in WAYS},
        "trained": {},
    }
    for i, way in enumerate(WAYS):
        model = _build(seed)
        model.load_state_dict(base.state_dict())
        if way == "lora":
            add_lora(model, rank=_RANK, alpha=2.0 * _RANK, targets=("qkv", "out", "up", "down"))
        numbers["trained"][way] = sum(p.numel() for p in model.parameters() if p.requires_grad)
        own = sub_progress(progress, 0.25 * (i + 1), 0.25 * (i + 2), numbers)
        _fine_tune(model, languages, way, seed, steps, tests, numbers["right"][way], own)
        if way == "lora":
            remove_lora(model)
            numbers["removed"] = _score(model, tests[0])
    return numbers


def _build(seed: int) -> Decoder:
    torch.manual_seed(seed)
    return Decoder(
        Config(
            family="decoder",
            vocab_size=_LETTERS + len(LANGUAGES),
            dim=_DIM,
            n_layers=1,
            n_heads=4,
            hidden_dim=2 * _DIM,
            max_len=_LENGTH + 1,
            positions=Positions(kind="rotary"),
        )
    )


def _fine_tune(
    model: Decoder,
    languages: _Languages,
    way: str,
    seed: int,
    steps: int,
    tests: list[Batch],
    right: dict[str, list[float]],
    progress: ProgressCallback,
) -> None:
    language = torch.ones(_BATCH, dtype=torch.long)
    if way == "replay":
        language[: int(_REPLAYED * _BATCH)] = 0
    every = steps // _PLACES
    losses: list[float] = []

    def look(share: float | int, numbers: dict[str, Any] | None = None, /) -> None:
        del numbers
        if len(losses) % every == 0:
            for name, test in zip(LANGUAGES, tests, strict=True):
                right[name].append(_score(model, test))
        progress(share)

    train_toy(
        model,
        lambda generator: languages.draw(language, generator),
        steps=steps,
        schedule=warmup_cosine(_RATE, steps),
        seed=seed + 1,
        progress=look,
        losses=losses,
    )


def _test_set(languages: _Languages, language: int, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(2000 + seed)
    return languages.draw(torch.full((64,), language), generator)


def _score(model: Decoder, test: Batch) -> float:
    tokens, targets = test
    with torch.no_grad():
        return accuracy(model(tokens), targets)


def judge(numbers: Numbers) -> Verdict:
    right, before, trained = numbers["right"], numbers["before"], numbers["trained"]
    last = {way: {name: right[way][name][-1] for name in LANGUAGES} for way in WAYS}
    lost = {way: before["old"] - last[way]["old"] for way in WAYS}
    learned = min(last[way]["new"] for way in ("full", "replay"))
    return Verdict.of(
        Check(
            "forgotten",
            lost["full"] > 0.3 and last["full"]["new"] > 0.7,
            {"before": before["old"], "after": last["full"]["old"], "new": last["full"]["new"]},
        ),
        Check(
            "replay",
            lost["replay"] < 0.15 and learned > 0.7,
            {"old": last["replay"]["old"], "new": last["replay"]["new"]},
        ),
        Check(
            "lora",
            last["lora"]["new"] > 0.7
            and lost["lora"] > 0.3
            and trained["lora"] < trained["full"] / 2,
            {
                "new": last["lora"]["new"],
                "old": last["lora"]["old"],
                "share": trained["lora"] / trained["full"],
            },
        ),
        Check(
            "removed",
            numbers["removed"] == before["old"],
            {"before": before["old"], "removed": numbers["removed"]},
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    def panel(language: str) -> Lines:
        return Lines(
            title=texts(language),
            x=Axis(label=texts("step")),
            y=Axis(label=texts("right"), least=0.0, most=1.0),
            places=tuple(numbers["places"]),
            series=tuple(
                Series(name=texts(way), values=tuple(numbers["right"][way][language]))
                for way in WAYS
            ),
            marks=(
                Mark(name=texts("best"), at=numbers["best"]),
                Mark(name=texts("chance"), at=1 / _LETTERS),
            ),
        )

    trained = numbers["trained"]
    bars = Bars(
        title=texts("trained"),
        y=Axis(label=texts("parameters"), least=0.0),
        names=tuple(texts(way) for way in WAYS if way in trained),
        series=(
            Series(
                name=texts("parameters"),
                values=tuple(trained[way] for way in WAYS if way in trained),
            ),
        ),
    )
    return Chart((panel("old"), panel("new"), bars))


EXPERIMENT = Experiment(
    name="forgetting",
    look_at=(
        "models/lora.py:add_lora",
        "layers/lora.py:LoRALinear",
        "training/finetuning.py:build_finetuned",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
