"""What a text costs in tokens: byte-pair encodings learned from one language or from both."""

import re
from importlib.resources import files
from typing import NamedTuple

import torch

from glassformer.render.chart import Axis, Chart, Lines, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.text import learn_tokenizer
from glassformer.text.tokenizer import Tokenizer


class _Size(NamedTuple):
    vocabularies: tuple[int, ...]


_SIZES = {
    "quick": _Size((512, 1024, 2048)),
    "full": _Size((300, 512, 768, 1024, 1536, 2048, 3072)),
}
SOURCES = {"english": ("en",), "chinese": ("zh",), "both": ("en", "zh")}
_CODE = re.compile(r"```.*?```|\{\{.*?\}\}", re.DOTALL)


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Learn from three quarters of the chapters, count the tokens of the others.

    The chapters say the same in both languages, paragraph by paragraph: what differs is the cost.
    The seed decides which of them are held out.
    """
    sizes = _SIZES[size].vocabularies
    chapters = {code: _read_chapters(code) for code in ("en", "zh")}
    order = torch.randperm(
        len(chapters["en"]), generator=torch.Generator().manual_seed(seed)
    ).tolist()
    held, learned = order[: len(order) // 4], order[len(order) // 4 :]
    tokens: dict[str, dict[str, list[int]]] = {name: {"en": [], "zh": []} for name in SOURCES}
    numbers: Numbers = {
        "vocabularies": list(sizes),
        "held": len(held),
        "bytes": {code: sum(len(chapters[code][i].encode()) for i in held) for code in chapters},
        "tokens": tokens,
        "damaged": 0,
    }
    runs = [(name, vocab_size) for name in SOURCES for vocab_size in sizes]
    for (name, vocab_size), _ in iterate_with_progress(runs, progress, numbers):
        lines = [
            line
            for code in SOURCES[name]
            for i in learned
            for line in chapters[code][i].split("\n")
        ]
        tokenizer, _special = learn_tokenizer(lines, "byte-bpe", vocab_size)
        for code, texts in chapters.items():
            counts, damaged = _count_tokens(tokenizer, [texts[i] for i in held])
            tokens[name][code].append(counts)
            numbers["damaged"] += damaged
    return numbers


def _read_chapters(code: str) -> list[str]:
    """The prose of every chapter; code is the same in both languages and would hide the rest."""
    folder = files("glassformer.course").joinpath("chapters", code)
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".md")), key=str)
    return [_CODE.sub("", file.read_text("utf-8")) for file in found]


def _count_tokens(tokenizer: Tokenizer, texts: list[str]) -> tuple[int, int]:
    """The tokens of the texts, and how many texts cannot be restored from theirs."""
    encoded = [tokenizer.encode(text) for text in texts]
    restored = [tokenizer.decode(tokens) for tokens in encoded]
    damaged = sum(a != b for a, b in zip(texts, restored, strict=True))
    return sum(map(len, encoded)), damaged


def _ratios(numbers: Numbers, name: str) -> list[float]:
    counts = numbers["tokens"][name]
    return [zh / en for en, zh in zip(counts["en"], counts["zh"], strict=True)]


def judge(numbers: Numbers) -> Verdict:
    sizes = numbers["vocabularies"]
    english, chinese, both = (_ratios(numbers, name)[-1] for name in SOURCES)
    counts = numbers["tokens"]["both"]["en"]
    first = (counts[0] - counts[1]) / (sizes[1] - sizes[0])
    last = (counts[-2] - counts[-1]) / (sizes[-1] - sizes[-2])
    return Verdict.of(
        # Both chapters take about as many bytes: a factor of 2 is the tokenizer's doing.
        Check("english", english > 2, {"size": sizes[-1], "ratio": english}),
        Check("both", 0.75 < both < 1.25, {"size": sizes[-1], "ratio": both}),
        Check("chinese", chinese < 0.75, {"size": sizes[-1], "ratio": chinese}),
        Check("lossless", numbers["damaged"] == 0, {"damaged": numbers["damaged"]}),
        # Merges are learned in the order of their counts: what comes later saves less.
        Check("diminishing", last < first / 2, {"first": first, "last": last}),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    sizes = tuple(numbers["vocabularies"])
    axis = Axis(label=texts("vocabulary"), log=True)
    ratios = Lines(
        title=texts("ratio"),
        x=axis,
        y=Axis(label=texts("ratio_axis"), least=0.0),
        places=sizes,
        series=tuple(
            Series(name=texts(name), values=tuple(_ratios(numbers, name))) for name in SOURCES
        ),
        marks=(Mark(name=texts("equal"), at=1.0),),
    )
    lengths = Lines(
        title=texts("length"),
        x=axis,
        y=Axis(label=texts("length_axis"), least=0.0),
        places=sizes,
        series=tuple(
            Series(
                name=texts(f"{code}_with_both"),
                values=tuple(n / all_bytes for n in numbers["tokens"]["both"][code]),
            )
            for code, all_bytes in numbers["bytes"].items()
        ),
        marks=(Mark(name=texts("byte"), at=1.0),),
    )
    return Chart((ratios, lengths))


EXPERIMENT = Experiment(
    name="tokenization",
    look_at=(
        "text/tokenizer_training.py:learn_tokenizer",
        "text/vocabularies.py:KINDS",
        "text/tokenizer.py:JsonTokenizer",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
