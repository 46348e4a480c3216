"""Order: attention sees none until positions come; and what becomes of them beyond training."""

from typing import NamedTuple

import torch

from glassformer.models import Config, Decoder, Encoder, Positions
from glassformer.models.config import PositionKind
from glassformer.render.chart import Axis, Bars, Chart, Lines, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.measurement import largest_difference
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import Batch, accuracy, train_toy, warmup_cosine
from glassformer.training.loss import IGNORED


class _Size(NamedTuple):
    steps: int
    lengths: tuple[int, ...]


_SIZES = {"quick": _Size(250, (32, 64, 128)), "full": _Size(800, (16, 32, 48, 64, 128, 256))}
KINDS: tuple[PositionKind, ...] = ("none", "sinusoidal", "learned", "rotary", "alibi")
_TRAINED, _BATCH, _VOCABULARY, _ASKED = 32, 16, 12, 12


def draw_previous(generator: torch.Generator, length: int = _TRAINED) -> Batch:
    """Each place asks for the token before it: nothing but order tells which one that is."""
    tokens = torch.randint(0, _VOCABULARY, (_BATCH, length), generator=generator)
    targets = torch.full_like(tokens, IGNORED)
    targets[:, 1:] = tokens[:, :-1]
    return tokens, targets


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Shuffled inputs first; then training at one length and testing at others."""
    steps, lengths = _SIZES[size]
    right: dict[str, list[float]] = {kind: [] for kind in KINDS}
    numbers: Numbers = {
        "lengths": list(lengths),
        "trained": _TRAINED,
        "shuffled": {kind: _shuffling_error(kind) for kind in KINDS},
        "right": right,
        "chance": 1 / _VOCABULARY,
    }
    for kind, own in iterate_with_progress(KINDS, progress, numbers):
        torch.manual_seed(seed)
        config = _config("decoder", kind, max(lengths))
        model = Decoder(config)
        train_toy(
            model,
            draw_previous,
            steps=steps,
            schedule=warmup_cosine(4e-3, steps),
            seed=seed,
            progress=own,
        )
        right[kind] = [_accuracy_at(model, length, seed) for length in lengths]
    return numbers


def _config(family: str, kind: PositionKind, max_len: int) -> Config:
    return Config(
        family=family,  # type: ignore[arg-type]
        vocab_size=_VOCABULARY,
        dim=64,
        n_layers=1,
        n_heads=8,
        hidden_dim=64,
        max_len=max_len,
        positions=Positions(kind=kind),
        scaled_embedding=True,  # else sinusoids of size 1 drown embeddings of size 0.02
    )


def _shuffling_error(kind: PositionKind) -> float:
    """How far encode(shuffled tokens) is from shuffled encode(tokens)."""
    model = Encoder(_config("encoder", kind, 16)).double().eval()
    tokens = torch.randint(0, _VOCABULARY, (1, 16))
    order = torch.randperm(16)
    with torch.no_grad():
        return largest_difference(model(tokens[:, order]), model(tokens)[:, order])


def _accuracy_at(model: Decoder, length: int, seed: int) -> float:
    """Accuracy at the last places of texts of a length."""
    generator = torch.Generator().manual_seed(seed + 1)
    results = []
    with torch.no_grad():
        for _ in range(4):
            tokens, targets = draw_previous(generator, length)
            targets[:, :-_ASKED] = IGNORED
            results.append(accuracy(model(tokens), targets))
    return sum(results) / len(results)


def judge(numbers: Numbers) -> Verdict:
    shuffled, right = numbers["shuffled"], numbers["right"]
    inside = numbers["lengths"].index(numbers["trained"])
    at_length = {kind: right[kind][inside] for kind in KINDS}
    beyond = {kind: right[kind][-1] for kind in KINDS}
    with_order = [kind for kind in KINDS if kind != "none"]
    chance = numbers["chance"]
    return Verdict.of(
        # float64: equal up to rounding without positions, nowhere near it with them.
        Check(
            "equivariant",
            shuffled["none"] < 1e-10 and min(shuffled[kind] for kind in with_order) > 1e-3,
            {"none": shuffled["none"], "least": min(shuffled[kind] for kind in with_order)},
        ),
        # Half right cannot be had by guessing among twelve, nor by knowing which tokens occur.
        Check(
            "inside",
            min(at_length[kind] for kind in with_order) > 0.5 and at_length["none"] < 0.35,
            at_length,
        ),
        # Vectors that were never trained are noise: three times chance is already generous.
        Check("learned", beyond["learned"] < 3 * chance, {"right": beyond["learned"]}),
        # Distances alone count in ALiBi, and near ones do not change with length.
        Check(
            "alibi",
            beyond["alibi"] > 0.8 * at_length["alibi"],
            {"inside": at_length["alibi"], "beyond": beyond["alibi"]},
        ),
        # What a formula can still say at any place, a trained model need not understand.
        Check(
            "formulas",
            max(beyond["sinusoidal"], beyond["rotary"]) < 0.5,
            {"sinusoidal": beyond["sinusoidal"], "rotary": beyond["rotary"]},
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    return Chart(
        (
            Bars(
                title=texts("shuffled"),
                y=Axis(label=texts("apart")),
                names=tuple(texts(kind) for kind in KINDS),
                series=(
                    Series(
                        name=texts("apart"),
                        values=tuple(numbers["shuffled"][kind] for kind in KINDS),
                    ),
                ),
            ),
            Lines(
                title=texts("lengths"),
                x=Axis(label=texts("length"), log=True),
                y=Axis(label=texts("right"), least=0.0, most=1.0),
                places=tuple(numbers["lengths"]),
                series=tuple(
                    Series(name=texts(kind), values=tuple(numbers["right"][kind])) for kind in KINDS
                ),
                marks=(
                    Mark(name=texts("trained"), at=numbers["trained"], side="x"),
                    Mark(name=texts("chance"), at=numbers["chance"]),
                ),
            ),
        )
    )


EXPERIMENT = Experiment(
    name="order",
    look_at=(
        "functional/positions/sinusoidal.py:sinusoidal",
        "layers/embedding.py:LearnedPositions",
        "functional/positions/rotary.py:Rotary",
        "functional/biases.py:ALiBi",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
)
