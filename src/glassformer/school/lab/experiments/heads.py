"""What heads do: their roles in a model that learned to repeat, and what breaks without each."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.analysis import roles
from glassformer.errors import ConfigError
from glassformer.models import Config, Decoder, Positions
from glassformer.models.checkpoints import load
from glassformer.render.chart import Axis, Bars, Chart, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.progress import ProgressCallback, sub_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import Batch, accuracy, train_toy, warmup_cosine
from glassformer.tracing import watch
from glassformer.training.loss import IGNORED


class _Size(NamedTuple):
    steps: int
    texts: int  # that the trained model is tested on


_SIZES = {"quick": _Size(250, 32), "full": _Size(800, 64)}
_BATCH, _LENGTH, _VOCABULARY = 16, 32, 16
_PERIODS = (4, 12)
_MOST_HEADS = 256  # of a saved model; each is one more run over the texts
_LEAST_ROLE = 0.3  # as in analysis/head_roles: below it a head has no role of its own


def draw_repeating(
    generator: torch.Generator, *, n: int, length: int, vocab_size: int, periods: tuple[int, int]
) -> Batch:
    """Random words said again and again, each text with a period of its own.

    No word comes twice in one period, so that the word before tells what comes next. The period
    differs, so that no fixed distance does.
    """
    period = torch.randint(periods[0], periods[1] + 1, (n, 1), generator=generator)
    texts = torch.stack(
        [torch.randperm(vocab_size, generator=generator)[: periods[1]] for _ in range(n)]
    )
    tokens = texts.gather(1, torch.arange(length) % period)  # (n, length)
    targets = torch.full_like(tokens, IGNORED)
    targets[:, :-1] = tokens[:, 1:]
    targets[torch.arange(length) < period] = IGNORED  # what has not been said cannot be known
    return tokens, targets


def measure(size: str, seed: int, progress: ProgressCallback, model: str | None = None) -> Numbers:
    """Roles by what heads look at; their worth by what is lost when one gives zeros."""
    steps, n = _SIZES[size]
    found = (
        _train_decoder(steps, seed, sub_progress(progress, 0, 0.8))
        if model is None
        else _load_decoder(model)
    )
    found.eval()
    generator = torch.Generator().manual_seed(seed + 1)
    config = found.config
    tokens, targets = draw_repeating(
        generator,
        n=n if model is None else 4,
        length=min(config.max_len, _LENGTH if model is None else 96),
        vocab_size=config.vocab_size,
        periods=_PERIODS if model is None else (20, 30),
    )
    with torch.no_grad():
        whole = accuracy(found(tokens), targets)
        with watch(found) as trace:
            found(tokens)
        heads: list[Numbers] = []
        numbers: Numbers = {
            "whole": whole,
            "heads": heads,
            "model": model,
            "chance": 1 / config.vocab_size,
        }
        measured = sub_progress(progress, 0.8, 1, numbers)
        n_all = config.n_layers * config.n_heads
        for layer in range(config.n_layers):
            site = trace[f"decoder.{layer}.self"]
            few = range(min(n, 8, len(tokens)))
            by_text = [roles(site, tokens[i], sequence=i) for i in few]
            for head in range(config.n_heads):
                scores = {
                    name: sum(each[head].scores[name] for each in by_text) / len(by_text)
                    for name in ("induction", "previous", "positional", "broad")
                }
                with _ablate_head(found, layer, head):
                    right = accuracy(found(tokens), targets)
                heads.append({"layer": layer, "head": head, "right": right, **scores})
                measured(len(heads) / n_all)
    return numbers


def _train_decoder(steps: int, seed: int, progress: ProgressCallback) -> Decoder:
    config = Config(
        family="decoder",
        vocab_size=_VOCABULARY,
        dim=64,
        n_layers=2,
        n_heads=8,
        hidden_dim=64,
        max_len=_LENGTH,
        positions=Positions(kind="alibi"),
    )
    model = Decoder(config)

    def draw(generator: torch.Generator) -> Batch:
        return draw_repeating(
            generator, n=_BATCH, length=_LENGTH, vocab_size=_VOCABULARY, periods=_PERIODS
        )

    train_toy(
        model, draw, steps=steps, schedule=warmup_cosine(4e-3, steps), seed=seed, progress=progress
    )
    return model


def _load_decoder(folder: str) -> Decoder:
    model = load(folder, dtype=torch.float32)
    if not isinstance(model, Decoder):
        kind = getattr(getattr(model, "config", None), "family", type(model).__name__)
        raise ConfigError(f"The experiment heads needs a decoder; {folder} holds one of {kind}.")
    n = model.config.n_layers * model.config.n_heads
    if n > _MOST_HEADS:
        raise ConfigError(
            f"The experiment heads takes a model of at most {_MOST_HEADS} heads; {folder} has {n}."
        )
    return model


@contextmanager
def _ablate_head(model: Decoder, layer: int, head: int) -> Iterator[None]:
    """The model while one head gives zeros: its part of the sum behind attention is missing."""

    def silence(_module: object, _inputs: object, out: Tensor) -> Tensor:
        return out.index_fill(1, torch.tensor([head], device=out.device), 0.0)

    core = model.decoder.blocks[layer].attention.core  # type: ignore[union-attr]
    hook = core.register_forward_hook(silence)  # type: ignore[union-attr]
    try:
        yield
    finally:
        hook.remove()


def judge(numbers: Numbers) -> Verdict:
    heads = numbers["heads"]
    best = max(heads, key=lambda head: head["induction"])
    first = max(head["induction"] for head in heads if head["layer"] == 0)
    drops = [numbers["whole"] - head["right"] for head in heads]
    worst = heads[drops.index(max(drops))]
    return Verdict.of(
        # The bar from which roles are named at all, well beyond what even attention scores (0).
        Check(
            "induction",
            best["induction"] >= _LEAST_ROLE and best["layer"] > 0 and first < _LEAST_ROLE,
            {
                "layer": best["layer"],
                "head": best["head"],
                "score": best["induction"],
                "first": first,
            },
        ),
        Check("learned", numbers["whole"] > 0.8, {"right": numbers["whole"]}),
        # A model that shared everything evenly would lose about as much with any head.
        Check(
            "unequal",
            max(drops) > 0.2 and median(drops) < max(drops) / 3,
            {
                "layer": worst["layer"],
                "head": worst["head"],
                "most": max(drops),
                "median": median(drops),
            },
        ),
    )


def _name_by_rank(heads: list[Numbers], texts: ExperimentTexts) -> tuple[str, ...]:
    ranks: Counter[int] = Counter()
    names = []
    for head in heads:
        ranks[head["layer"]] += 1
        names.append(texts("rank", layer=head["layer"], rank=ranks[head["layer"]]))
    return tuple(names)


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    # All heads of a small model; of a large one those that matter most.
    shown = sorted(numbers["heads"], key=lambda head: head["right"])[:24]
    if numbers["model"] is None:
        # Which number the head of a role has is chance: runs are compared by rank.
        shown.sort(key=lambda head: (head["layer"], head["right"]))
        names = _name_by_rank(shown, texts)
    else:
        shown.sort(key=lambda head: (head["layer"], head["head"]))
        names = tuple(texts("head", layer=head["layer"], head=head["head"]) for head in shown)
    return Chart(
        (
            Bars(
                title=texts("removed"),
                y=Axis(label=texts("right")),
                names=names,
                series=(
                    Series(name=texts("right"), values=tuple(head["right"] for head in shown)),
                ),
                marks=(
                    Mark(name=texts("whole"), at=numbers["whole"]),
                    Mark(name=texts("chance"), at=numbers["chance"]),
                ),
            ),
            Bars(
                title=texts("roles"),
                y=Axis(label=texts("score")),
                names=names,
                series=tuple(
                    Series(name=texts(role), values=tuple(max(0.0, head[role]) for head in shown))
                    for role in ("positional", "induction")
                ),
            ),
        )
    )


EXPERIMENT = Experiment(
    name="heads",
    look_at=(
        "analysis/head_roles.py:roles",
        "tracing/context.py:watch",
        "layers/attention.py:Core",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    takes_model=True,
    n_seeds=3,
)
