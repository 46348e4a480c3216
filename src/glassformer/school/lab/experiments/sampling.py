"""Ways to choose the next token: how likely the texts of the writer are, and how they repeat."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import torch

from glassformer.generation import Sampling, beam_search, generate_tokens
from glassformer.models import Decoder
from glassformer.models.checkpoints import load
from glassformer.render.chart import Axis, Bars, Chart, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts


class _Size(NamedTuple):
    prompts: int
    tokens: int


_SIZES = {"quick": _Size(6, 60), "full": _Size(12, 80)}
_PROMPTS = (
    "My dear Emma,",
    "The captain of the ship was",
    "And God said unto",
    "She opened the door and",
    "It was a dark night, and",
    "The king sat upon his throne, and",
    "Mrs. Weston smiled, and",
    "The whale",
    "I do not know",
    "When the morning came,",
    "There was once a little",
    "He took the letter and",
    "In the garden there was",
    "My lord, I have",
    "The old man looked at",
    "As soon as they were alone,",
)
_BEAMS, _GRAM = 4, 4
WAYS: dict[str, Sampling | None] = {
    "beam": None,
    "greedy": Sampling(temperature=0),
    "penalty": Sampling(temperature=0, repetition_penalty=1.2),
    "nucleus": Sampling(top_p=0.9),
    "pure": Sampling(),
    "hot": Sampling(temperature=1.5),
    "hot_min_p": Sampling(temperature=1.5, min_p=0.1),
}


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """The same prompts for every way; the seed draws the prompts and the tokens."""
    n, length = _SIZES[size]
    model = load("writer")
    assert isinstance(model, Decoder) and model.tokenizer is not None
    prompts = [model.tokenizer.encode(prompt) for prompt in random.Random(seed).sample(_PROMPTS, n)]
    found: dict[str, dict[str, float]] = {}
    numbers: Numbers = {"prompts": n, "length": length, "ways": found}
    for name, _ in iterate_with_progress(list(WAYS), progress, numbers):
        texts = _write(model, prompts, WAYS[name], length, seed)
        surprise, entropy = _read_back(model, prompts, texts)
        repeated = sum(_repeated_share(text) for text in texts) / n
        found[name] = {"surprise": surprise, "entropy": entropy, "repeated": repeated}
    return numbers


def _write(
    model: Decoder,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling | None,
    length: int,
    seed: int,
) -> list[list[int]]:
    if sampling is None:
        found = beam_search(model, prompts, max_new_tokens=length, beams=_BEAMS)
        return [list(best.tokens) for (best, *_) in found]
    return generate_tokens(model, prompts, max_new_tokens=length, sampling=sampling, seed=seed)


def _read_back(
    model: Decoder, prompts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]
) -> tuple[float, float]:
    """What the model itself, unchanged, thinks: nats per token, and what it expects them to be."""
    surprises, entropies = [], []
    with torch.no_grad():
        for prompt, text in zip(prompts, texts, strict=True):
            logits = model(torch.tensor([[*prompt, *text]]))[0, len(prompt) - 1 : -1]
            log_p = logits.double().log_softmax(-1)
            chosen = log_p.gather(1, torch.tensor(text)[:, None])
            surprises.append(float(-chosen.mean()))
            entropies.append(float(-(log_p.exp() * log_p).sum(-1).mean()))
    return sum(surprises) / len(surprises), sum(entropies) / len(entropies)


def _repeated_share(text: Sequence[int]) -> float:
    """Of all runs of four tokens, the share that has occurred before in the same text."""
    runs = [tuple(text[i : i + _GRAM]) for i in range(len(text) - _GRAM + 1)]
    return 1 - len(set(runs)) / len(runs)


def judge(numbers: Numbers) -> Verdict:
    ways = numbers["ways"]
    repeated = {name: way["repeated"] for name, way in ways.items()}
    surprise = {name: way["surprise"] for name, way in ways.items()}
    pure = ways["pure"]
    return Verdict.of(
        # Prose of forty tokens repeats hardly any four in a row; a loop repeats most of them.
        Check(
            "loops",
            min(repeated["greedy"], repeated["beam"]) > 0.2 and repeated["pure"] < 0.05,
            {name: repeated[name] for name in ("greedy", "beam", "pure")},
        ),
        Check(
            "likely",
            surprise["beam"] < surprise["greedy"] < surprise["pure"] - 1,
            {name: surprise[name] for name in ("beam", "greedy", "pure")},
        ),
        # Sampled from the model's own distribution, the surprise is its entropy on average.
        Check(
            "typical",
            abs(pure["surprise"] - pure["entropy"]) < 0.4,
            {"surprise": pure["surprise"], "entropy": pure["entropy"]},
        ),
        Check(
            "penalty",
            repeated["penalty"] < repeated["greedy"] / 2,
            {"with": repeated["penalty"], "without": repeated["greedy"]},
        ),
        Check(
            "filters",
            surprise["hot_min_p"] < surprise["hot"] - 1
            and surprise["nucleus"] < surprise["pure"]
            and max(repeated["hot_min_p"], repeated["nucleus"]) < 0.2,
            {
                "hot": surprise["hot"],
                "min_p": surprise["hot_min_p"],
                "nucleus": surprise["nucleus"],
                "repeated": max(repeated["hot_min_p"], repeated["nucleus"]),
            },
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    ways = numbers["ways"]
    names = tuple(texts(name) for name in ways)
    return Chart(
        (
            Bars(
                title=texts("repetition"),
                y=Axis(label=texts("repeated"), least=0.0, most=1.0),
                names=names,
                series=(
                    Series(
                        name=texts("repeated"),
                        values=tuple(way["repeated"] for way in ways.values()),
                    ),
                ),
            ),
            Bars(
                title=texts("likelihood"),
                y=Axis(label=texts("nats"), least=0.0),
                names=names,
                series=tuple(
                    Series(name=texts(what), values=tuple(way[what] for way in ways.values()))
                    for what in ("surprise", "entropy")
                ),
            ),
        )
    )


EXPERIMENT = Experiment(
    name="sampling",
    look_at=(
        "generation/sampling.py:adjust",
        "generation/sampling.py:choose",
        "generation/beam.py:beam_search",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
