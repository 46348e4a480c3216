"""One vector for a whole sentence, or attention: what translation loses as sentences get longer."""

from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.models.parameters import count_parameters, match_dim
from glassformer.models.recurrent import LSTMSeq2Seq
from glassformer.render.chart import Axis, Bars, Chart, Lines, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import train_toy, warmup_cosine


class _Size(NamedTuple):
    words: int  # in the dictionary
    lengths: tuple[int, ...]  # of the sentences that are translated after training
    dim: int
    steps: int
    lr: float


_SIZES = {
    "quick": _Size(16, (2, 4, 6, 8, 10), 24, 180, 2e-2),
    "full": _Size(24, (2, 4, 8, 12, 16, 20), 32, 400, 1e-2),
}
_BATCH, _TRIED = 32, 256
MODELS = ("attention", "vector", "narrow")


class DictionaryTask(NamedTuple):
    """Sentences of different words, each translated by one word of another language, in order.

    Which word follows which cannot be guessed, so that each must be taken from the source.
    """

    words: int

    @property
    def start(self) -> int:
        """The target token before the first word."""
        return self.words

    def draw(self, generator: torch.Generator, length: int, n: int = _BATCH) -> Tensor:
        """Sentences; word i of one language is word i of the other."""
        return torch.rand(n, self.words, generator=generator).argsort(1)[:, :length]

    def shift(self, sentences: Tensor) -> Tensor:
        """What the decoder reads: the start, then every word but the last."""
        return torch.cat([torch.full_like(sentences[:, :1], self.start), sentences[:, :-1]], 1)


def build(name: str, words: int, dim: int) -> LSTMSeq2Seq:
    """The model with attention; one without, as large; one without, half as wide as that."""

    def make(dim: int, *, attention: bool) -> LSTMSeq2Seq:
        return LSTMSeq2Seq(words, words + 1, dim, 1, attention=attention)

    if name == "attention":
        return make(dim, attention=True)
    n = count_parameters(make(dim, attention=True))
    as_wide = match_dim(n, lambda dim: make(dim, attention=False))
    return make(as_wide if name == "vector" else as_wide // 2, attention=False)


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Train all three on the same sentences of every length, then translate others."""
    words, lengths, dim, steps, lr = _SIZES[size]
    task = DictionaryTask(words)
    right: dict[str, list[float]] = {name: [] for name in MODELS}
    parameters: dict[str, int] = {}
    widths: dict[str, int] = {}
    numbers: Numbers = {
        "lengths": list(lengths),
        "right": right,
        "chance": 1 / words,
        "parameters": parameters,
        "widths": widths,
        "aligned": [],
        "averaged": [],
    }

    def draw_batch(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        length = int(torch.randint(1, lengths[-1] + 1, (), generator=generator))
        sentences = task.draw(generator, length)
        return sentences, sentences

    for name, own in iterate_with_progress(MODELS, progress, numbers):
        torch.manual_seed(seed)
        model = build(name, words, dim)

        def translate(source: Tensor, model: LSTMSeq2Seq = model) -> Tensor:
            return model(source, _lengths(source), task.shift(source))

        train_toy(
            model,
            draw_batch,
            steps=steps,
            schedule=warmup_cosine(lr, steps),
            seed=seed,
            progress=own,
            predict=translate,
        )
        parameters[name], widths[name] = count_parameters(model), model.decoder.hidden_size
        generator = torch.Generator().manual_seed(seed + 1)
        for length in lengths:
            source = task.draw(generator, length, _TRIED)
            with torch.no_grad():
                right[name].append(_share_right(translate(source), source))
                if name == "attention":
                    numbers["aligned"].append(_share_aligned(model, task, source))
                    numbers["averaged"].append(_share_right_when_averaged(model, task, source))
    return numbers


def _lengths(source: Tensor) -> Tensor:
    return torch.full((len(source),), source.shape[1])


def _share_right(logits: Tensor, targets: Tensor) -> float:
    return float((logits.argmax(-1) == targets).float().mean())


def _share_aligned(model: LSTMSeq2Seq, task: DictionaryTask, source: Tensor) -> float:
    """How often the largest weight lies on the source word that is being translated."""
    weights = model.attend_weights(task.shift(source), model.encode(source, _lengths(source)))
    return _share_right(weights, torch.arange(source.shape[1]).expand_as(source))


def _share_right_when_averaged(model: LSTMSeq2Seq, task: DictionaryTask, source: Tensor) -> float:
    """The same model when every source word is given the same weight."""
    memory = model.encode(source, _lengths(source))
    mean = memory.context.mean(dim=1, keepdim=True).expand_as(memory.context)
    logits, _ = model.decode(task.shift(source), memory._replace(context=mean))
    return _share_right(logits, source)


def judge(numbers: Numbers) -> Verdict:
    right, widths = numbers["right"], numbers["widths"]
    attention, vector, narrow = (right[name] for name in MODELS)
    sizes = [numbers["parameters"][name] for name in ("attention", "vector")]
    return Verdict.of(
        # Both can translate the shortest sentences; what differs is what length does to them.
        Check(
            "length",
            min(attention[0], vector[0]) > 0.95
            and attention[-1] > 0.75
            and vector[-1] < attention[-1] - 0.25,
            {
                "short": numbers["lengths"][0],
                "long": numbers["lengths"][-1],
                "attention_short": attention[0],
                "vector_short": vector[0],
                "attention": attention[-1],
                "vector": vector[-1],
            },
        ),
        Check(
            "width",
            narrow[-1] < vector[-1] - 0.05,
            {
                "wide": widths["vector"],
                "narrow_width": widths["narrow"],
                "vector": vector[-1],
                "narrow": narrow[-1],
            },
        ),
        Check(
            "aligned",
            numbers["aligned"][-1] > 0.5 and numbers["averaged"][-1] < attention[-1] - 0.25,
            {"aligned": numbers["aligned"][-1], "averaged": numbers["averaged"][-1]},
        ),
        # Widths are whole numbers: within 5 % is as near as they come.
        Check("matched", max(sizes) < 1.05 * min(sizes), {"least": min(sizes), "most": max(sizes)}),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    by_length = Lines(
        title=texts("by_length"),
        x=Axis(label=texts("words")),
        y=Axis(label=texts("right"), least=0.0, most=1.0),
        places=tuple(float(length) for length in numbers["lengths"]),
        series=tuple(
            Series(name=texts(name), values=_pad(values, numbers["lengths"]))
            for name, values in numbers["right"].items()
        ),
        marks=(Mark(name=texts("chance"), at=numbers["chance"]),),
    )
    shares = [
        values[-1] if values else None
        for values in (numbers["right"]["attention"], numbers["averaged"], numbers["aligned"])
    ]
    longest = Bars(
        title=texts("longest"),
        y=Axis(label=texts("share"), least=0.0, most=1.0),
        names=(texts("learned"), texts("averaged"), texts("aligned")),
        series=(Series(name=texts("share"), values=tuple(shares)),),
    )
    return Chart((by_length, longest))


def _pad(values: list[float], lengths: list[int]) -> tuple[float | None, ...]:
    """While lengths are still measured, the rest is unknown."""
    return (*values, *[None] * (len(lengths) - len(values)))


EXPERIMENT = Experiment(
    name="bottleneck",
    look_at=(
        "models/recurrent.py:LSTMSeq2Seq",
        "models/recurrent.py:AdditiveAttention",
        "school/lab/experiments/bottleneck.py:DictionaryTask",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
