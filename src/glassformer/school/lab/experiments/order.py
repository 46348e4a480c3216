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
    heads: tuple[int, ...]
    lengths: tuple[int, ...]


_SIZES = {
    "quick": _Size(250, (4, 8), (32, 64, 128)),
    "full": _Size(400, (2, 4, 8), (16, 32, 48, 64, 128, 256)),
}
KINDS: tuple[PositionKind, ...] = ("none", "sinusoidal", "learned", "rotary", "alibi")
_TRAINED, _BATCH, _VOCABULARY, _ASKED = 32, 16, 12, 12


def draw_previous(generator: torch.Generator, length: int = _TRAINED) -> Batch:
    """Each place asks for the token before it: nothing but order tells which one that is."""
    tokens = torch.randint(0, _VOCABULARY, (_BATCH, length), generator=generator)
    targets = torch.full_like(tokens, IGNORED)
    targets[:, 1:] = tokens[:, :-1]
    return tokens, targets


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Shuffled inputs first; then training at one length and testing at others.

    The width of a head decides what RoPE and ALiBi can do, so every scheme is trained with several
    numbers of heads.
    """
    steps, heads, lengths = _SIZES[size]
    right: dict[str, list[list[float]]] = {kind: [[] for _ in heads] for kind in KINDS}
    numbers: Numbers = {
        "lengths": list(lengths),
        "heads": list(heads),
        "trained": _TRAINED,
        "shuffled": {kind: _shuffling_error(kind) for kind in KINDS},
        "right": right,  # by scheme, number of heads and length
        "chance": 1 / _VOCABULARY,
    }
    trainings: list[tuple[int, PositionKind]] = [
        (i, kind) for i in range(len(heads)) for kind in KINDS
    ]
    for (i, kind), own in iterate_with_progress(trainings, progress, numbers):
        torch.manual_seed(seed)
        model = Decoder(_config("decoder", kind, max(lengths), n_heads=heads[i]))
        train_toy(
            model,
            draw_previous,
            steps=steps,
            schedule=warmup_cosine(4e-3, steps),
            seed=seed,
            progress=own,
        )
        right[kind][i] = [_accuracy_at(model, length, seed) for length in lengths]
    return numbers


def _config(family: str, kind: PositionKind, max_len: int, *, n_heads: int = 8) -> Config:
    return Config(
        family=family,  # type: ignore[arg-type]
        vocab_size=_VOCABULARY,
        dim=64,
        n_layers=1,
        n_heads=n_heads,
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
    shuffled, right, heads = numbers["shuffled"], numbers["right"], numbers["heads"]
    lengths, trained, chance = numbers["lengths"], numbers["trained"], numbers["chance"]
    inside, twice = lengths.index(trained), lengths.index(2 * trained)
    at_length, at_twice, far = (
        {kind: [by_length[i] for by_length in right[kind]] for kind in KINDS}
        for i in (inside, twice, -1)
    )
    with_order = [kind for kind in KINDS if kind != "none"]
    kept = [b / a for a, b in zip(at_length["alibi"], far["alibi"], strict=True)]
    few_many = {"few": heads[0], "many": heads[-1]}
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
            min(min(at_length[kind]) for kind in ("sinusoidal", "learned", "rotary")) > 0.5
            and max(at_length["none"]) < 0.35,
            {
                **{kind: min(at_length[kind]) for kind in ("sinusoidal", "learned", "rotary")},
                "none": max(at_length["none"]),
            },
        ),
        # Vectors that were never trained, and sums that were never seen: three times chance is
        # already generous.
        Check(
            "absolute",
            max(*far["sinusoidal"], *far["learned"]) < 3 * chance,
            {"sinusoidal": max(far["sinusoidal"]), "learned": max(far["learned"])},
        ),
        # Distances alone count in ALiBi, and near ones do not change with length.
        Check(
            "alibi_kept",
            min(kept) > 0.8,
            {"least": min(kept), "inside": at_length["alibi"][-1], "far": far["alibi"][-1]},
        ),
        # The steepest of H slopes is 2^(−8/H): few heads have none that singles out a neighbour.
        Check(
            "alibi_slopes",
            at_length["alibi"][-1] > at_length["alibi"][0] + 0.15,
            {**few_many, "flat": at_length["alibi"][0], "steep": at_length["alibi"][-1]},
        ),
        # A gap of 0.2 between head counts is well beyond the spread across seeds.
        Check(
            "rotary_width",
            at_twice["rotary"][0] > at_twice["rotary"][-1] + 0.2,
            {**few_many, "wide": at_twice["rotary"][0], "narrow": at_twice["rotary"][-1]},
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    shuffled = Bars(
        title=texts("shuffled"),
        y=Axis(label=texts("apart")),
        names=tuple(texts(kind) for kind in KINDS),
        series=(
            Series(
                name=texts("apart"),
                values=tuple(numbers["shuffled"][kind] for kind in KINDS),
            ),
        ),
    )
    by_heads = (
        Lines(
            title=texts("lengths", n=n),
            x=Axis(label=texts("length"), log=True),
            y=Axis(label=texts("right"), least=0.0, most=1.0),
            places=tuple(numbers["lengths"]),
            series=tuple(
                Series(name=texts(kind), values=tuple(numbers["right"][kind][i])) for kind in KINDS
            ),
            marks=(
                Mark(name=texts("trained"), at=numbers["trained"], side="x"),
                Mark(name=texts("chance"), at=numbers["chance"]),
            ),
        )
        for i, n in enumerate(numbers["heads"])
    )
    return Chart((shuffled, *by_heads))


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
    n_seeds=3,
)
