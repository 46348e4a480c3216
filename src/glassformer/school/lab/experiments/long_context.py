"""RoPE beyond the trained length: a small model and the writer, with scalings and without."""

import re
from importlib.resources import files
from typing import Any, NamedTuple

import torch
from torch import Tensor

from glassformer.functional import LinearScaling, Mask, NTKScaling, Window, YaRNScaling
from glassformer.functional.positions.rotary_scalings import Scaling
from glassformer.models import Config, Decoder, Positions
from glassformer.models.checkpoints import load
from glassformer.render.chart import Axis, Bars, Chart, Lines, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.experiments.order import draw_previous
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress, sub_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import accuracy, train_toy, warmup_cosine
from glassformer.training.loss import IGNORED


class _Size(NamedTuple):
    steps: int
    tuning: int  # steps of fine-tuning on long texts
    lengths: tuple[int, ...]
    tokens: int  # of the text that the writer reads


_SIZES = {
    "quick": _Size(160, 20, (32, 64, 128), 1024),
    "full": _Size(300, 60, (32, 48, 64, 96, 128), 1536),
}
_TRAINED, _FACTOR, _VOCABULARY, _ASKED = 32, 4, 12, 12
_SCALINGS: dict[str, Scaling | None] = {
    "plain": None,
    "linear": LinearScaling(_FACTOR),
    "ntk": NTKScaling(_FACTOR),
    "yarn": YaRNScaling(_FACTOR, original_len=_TRAINED),
}
_CODE = re.compile(r"```.*?```|\{\{.*?\}\}", re.DOTALL)


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Train on short texts, test on long ones; then the same scalings for a model that ships."""
    steps, tuning, lengths, n_tokens = _SIZES[size]
    numbers: Numbers = {
        "lengths": list(lengths),
        "trained": _TRAINED,
        "chance": 1 / _VOCABULARY,
        "tuning": tuning,
        "right": {name: [] for name in _SCALINGS},  # at each length, without more training
        "tuned": {},  # at the longest, after some
        "writer": {},
    }
    torch.manual_seed(seed)
    model = Decoder(_config(None))
    train_toy(
        model,
        draw_previous,
        steps=steps,
        schedule=warmup_cosine(4e-3, steps),
        seed=seed,
        progress=sub_progress(progress, 0.0, 0.4, numbers),
    )
    for name, own in iterate_with_progress(
        list(_SCALINGS), sub_progress(progress, 0.4, 0.7, numbers), numbers
    ):
        scaled = Decoder(_config(_SCALINGS[name]))
        scaled.load_state_dict(model.state_dict())
        scaled.eval()
        numbers["right"][name] = [_accuracy_at(scaled, length, seed) for length in lengths]
        train_toy(
            scaled,
            lambda generator: _draw_long(generator, lengths[-1]),
            steps=tuning,
            schedule=warmup_cosine(1e-3, tuning),
            seed=seed + 1,
            progress=own,
        )
        numbers["tuned"][name] = _accuracy_at(scaled, lengths[-1], seed)
    _read_with_writer(n_tokens, seed, numbers, sub_progress(progress, 0.7, 1.0, numbers))
    return numbers


def _config(scaling: Scaling | None) -> Config:
    return Config(
        family="decoder",
        vocab_size=_VOCABULARY,
        dim=64,
        n_layers=1,
        n_heads=4,
        hidden_dim=64,
        max_len=_TRAINED * _FACTOR,
        positions=Positions(kind="rotary", scaling=scaling),
        scaled_embedding=True,
    )


def _draw_long(generator: torch.Generator, length: int) -> tuple[Tensor, Tensor]:
    tokens, targets = draw_previous(generator, length)
    return tokens[:4], targets[:4]  # as many tokens in a step as before


def _accuracy_at(model: Decoder, length: int, seed: int) -> float:
    """Accuracy at the last places of texts of a length."""
    generator = torch.Generator().manual_seed(seed + 2)
    with torch.no_grad():
        found = []
        for _ in range(3):
            tokens, targets = draw_previous(generator, length)
            targets[:, :-_ASKED] = IGNORED
            found.append(accuracy(model(tokens), targets))
    return sum(found) / len(found)


def _read_with_writer(
    n_tokens: int, seed: int, numbers: Numbers, progress: ProgressCallback
) -> None:
    """The loss beyond the writer's trained length, on the same tokens in every way.

    Texts differ in how much they lose, so that it is the mean of three.
    """
    writer: Any = load("writer")
    trained = writer.config.max_len
    encoded = writer.tokenizer.encode_many(_join_chapters(seed))
    tokens = torch.tensor([list(ids[:n_tokens]) for ids in encoded])
    ways: dict[str, tuple[Scaling | None, Mask | None]] = {
        "window": (None, Window(trained - 1)),
        "plain": (None, None),
        "linear": (LinearScaling(_FACTOR), None),
        "yarn": (YaRNScaling(_FACTOR, original_len=trained), None),
    }
    for name, _ in iterate_with_progress(list(ways), progress, numbers):
        scaling, mask = ways[name]
        positions = Positions(kind="rotary", base=writer.config.positions.base, scaling=scaling)
        model = Decoder(writer.config.replace(positions=positions))
        model.load_state_dict(writer.state_dict())
        with torch.no_grad():
            hidden = model.eval().hidden(tokens, mask=mask)[:, trained:-1]
            log_p = model.head(hidden, model.embedding.weight).log_softmax(-1)
        asked = tokens[:, trained + 1 :, None]
        numbers["writer"][name] = -float(log_p.gather(2, asked).mean())


def _join_chapters(seed: int) -> list[str]:
    """Three texts, each the prose of three English chapters drawn by the seed."""
    folder = files("glassformer.course").joinpath("chapters", "en")
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".md")), key=str)
    order = torch.randperm(len(found), generator=torch.Generator().manual_seed(seed))
    prose = [_CODE.sub("", found[i].read_text("utf-8")) for i in order[:9].tolist()]
    return ["\n".join(prose[i : i + 3]) for i in (0, 3, 6)]


def judge(numbers: Numbers) -> Verdict:
    right, tuned, writer = numbers["right"], numbers["tuned"], numbers["writer"]
    trained, twice = (numbers["lengths"].index(n * numbers["trained"]) for n in (1, 2))
    return Verdict.of(
        # A twelfth of the answers can be had by guessing.
        Check(
            "fails",
            right["plain"][trained] > 0.9 and right["plain"][-1] < 0.6,
            {"short": right["plain"][trained], "long": right["plain"][-1]},
        ),
        Check(
            "blurred",
            right["linear"][trained] < 0.5,
            {"plain": right["plain"][trained], "linear": right["linear"][trained]},
        ),
        Check(
            "ntk",
            right["ntk"][trained] > 0.9 and right["ntk"][twice] >= right["plain"][twice],
            {
                "short": right["ntk"][trained],
                "twice": right["ntk"][twice],
                "plain": right["plain"][twice],
            },
        ),
        Check(
            "yarn",
            right["yarn"][-1] > 0.7 and right["yarn"][-1] > right["plain"][-1] + 0.3,
            {"short": right["yarn"][trained], "long": right["yarn"][-1]},
        ),
        Check(
            "tuned",
            tuned["yarn"] > 0.95 and tuned["yarn"] > tuned["linear"] + 0.3,
            {"steps": numbers["tuning"], **tuned},
        ),
        # Nats of one and the same tokens: differences between texts cancel.
        Check(
            "writer",
            writer["plain"] > writer["window"] + 0.05
            and abs(writer["yarn"] - writer["window"]) < 0.1
            and writer["yarn"] < writer["plain"],
            dict(writer),
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    tuned, writer = numbers["tuned"], numbers["writer"]
    lengths = Lines(
        title=texts("lengths"),
        x=Axis(label=texts("length"), log=True),
        y=Axis(label=texts("right"), least=0.0, most=1.0),
        places=tuple(numbers["lengths"]),
        series=tuple(
            Series(name=texts(name), values=tuple(values))
            for name, values in numbers["right"].items()
        ),
        marks=(
            Mark(name=texts("trained"), at=numbers["trained"], side="x"),
            Mark(name=texts("chance"), at=numbers["chance"]),
        ),
    )
    after = Bars(
        title=texts("tuned", n=numbers["tuning"]),
        y=Axis(label=texts("right"), least=0.0, most=1.0),
        names=tuple(texts(name) for name in tuned),
        series=(Series(name=texts("right"), values=tuple(tuned.values())),),
    )
    extra = {name: loss - writer["window"] for name, loss in writer.items() if name != "window"}
    beyond = Bars(
        title=texts("writer"),
        y=Axis(label=texts("nats")),
        names=tuple(texts(name) for name in extra),
        series=(Series(name=texts("nats"), values=tuple(extra.values())),),
    )
    return Chart((lengths, after, beyond))


EXPERIMENT = Experiment(
    name="long-context",
    look_at=(
        "functional/positions/rotary_scalings.py:YaRNScaling",
        "functional/positions/rotary.py:Rotary",
        "functional/masks/positional.py:Window",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
