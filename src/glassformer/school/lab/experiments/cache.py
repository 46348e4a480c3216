"""The KV cache: what a token costs with and without it, and that the answer is the same."""

from typing import NamedTuple

import torch

from glassformer.models import Config, Decoder, Positions
from glassformer.render.chart import Axis, Chart, Lines, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.measurement import fit_exponent, largest_difference, measure_seconds
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts


class _Size(NamedTuple):
    lengths: tuple[int, ...]
    repeats: int


_SIZES = {
    "quick": _Size((128, 256, 512, 1024), 3),
    "full": _Size((64, 128, 256, 512, 1024, 2048), 9),
}
_DIM, _LAYERS, _HEADS, _VOCABULARY = 128, 2, 4, 97


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """The next token after a text of every length: all of it again, or one token and a cache."""
    del seed
    lengths, repeats = _SIZES[size]
    config = Config(
        family="decoder",
        vocab_size=_VOCABULARY,
        dim=_DIM,
        n_layers=_LAYERS,
        n_heads=_HEADS,
        max_len=lengths[-1] + 1,
        positions=Positions(kind="rotary"),
    )
    model = Decoder(config).eval()
    found: dict[str, list[float]] = {"without": [], "with": [], "bytes": [], "apart": []}
    numbers: Numbers = {"lengths": list(lengths), **found}
    with torch.no_grad():
        for L, _ in iterate_with_progress(lengths, progress, numbers):
            tokens = torch.randint(0, _VOCABULARY, (1, L + 1))
            cache = model.new_cache()
            model(tokens[:, :L], cache=cache)
            found["bytes"].append(
                sum(t.nbytes for layer in cache.layers for t in (layer.k, layer.v) if t is not None)
            )

            def again(tokens: torch.Tensor = tokens) -> torch.Tensor:
                return model(tokens)[:, -1]

            def step(tokens: torch.Tensor = tokens, L: int = L, cache=cache) -> torch.Tensor:  # type: ignore[no-untyped-def]
                cache.crop(L)  # forget the token of the last call, so that all calls are alike
                return model(tokens[:, L:], cache=cache)[:, -1]

            taken = measure_seconds(
                {"without": again, "with": step}, repeats=repeats, at_least=2e-3
            )
            for way, seconds in taken.items():
                found[way].append(seconds)
            found["apart"].append(largest_difference(again(), step()))
    return numbers


def judge(numbers: Numbers) -> Verdict:
    lengths = numbers["lengths"]
    without, with_ = (fit_exponent(lengths, numbers[way]) for way in ("without", "with"))
    times = numbers["without"][-1] / numbers["with"][-1]
    per_token = numbers["bytes"][-1] / lengths[-1]
    return Verdict.of(
        # Logits of size 1 in float32, from sums in another order.
        Check("same", max(numbers["apart"]) < 1e-4, {"apart": max(numbers["apart"])}),
        # Reading L tokens again costs at least L times one; short ones are quicker each.
        Check("growth", without > 0.5 and with_ < without / 2, {"without": without, "with": with_}),
        Check("quicker", times > 2, {"times": times, "length": lengths[-1]}),
        # Counted: 2 (keys and values) · layers · width · 4 bytes.
        Check(
            "bytes",
            per_token == 2 * _LAYERS * _DIM * 4,
            {"bytes": per_token, "expected": 2 * _LAYERS * _DIM * 4},
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    length = Axis(label=texts("length"), log=True)
    places = tuple(numbers["lengths"])
    return Chart(
        (
            Lines(
                title=texts("time"),
                x=length,
                y=Axis(label=texts("milliseconds"), log=True),
                places=places,
                series=tuple(
                    Series(name=texts(way), values=tuple(1e3 * s for s in numbers[way]))
                    for way in ("without", "with")
                ),
            ),
            Lines(
                title=texts("memory"),
                x=length,
                y=Axis(label=texts("kibibytes"), log=True),
                places=places,
                series=(
                    Series(name=texts("memory"), values=tuple(b / 1024 for b in numbers["bytes"])),
                ),
            ),
        )
    )


EXPERIMENT = Experiment(
    name="cache",
    look_at=(
        "functional/cache.py:GrowingCache",
        "models/cache.py:ModelCache",
        "generation/loop.py:generate_tokens",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
)
