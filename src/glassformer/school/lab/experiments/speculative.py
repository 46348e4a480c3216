"""Speculative decoding: fewer passes of the target model, and the distribution unchanged."""

import math
import re
from collections.abc import Callable
from importlib.resources import files
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.models import Config, Decoder, Positions
from glassformer.models.cache import ModelCache
from glassformer.render.chart import Axis, Bars, Chart, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.progress import ProgressCallback, sub_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import Batch, train_toy, warmup_cosine


class _Size(NamedTuple):
    steps: int
    texts: int


_SIZES = {"quick": _Size(120, 8), "full": _Size(500, 24)}
_LENGTH, _BATCH, _PROMPT, _WRITTEN = 48, 8, 8, 40
_DRAFTED = 4  # tokens that a draft proposes at a time
_ALPHABET = "abcdefghijklmnopqrstuvwxyz .,"
_CODE = re.compile(r"```.*?```|\{\{.*?\}\}|\[|\]\(.*?\)", re.DOTALL)
DRAFTS = ("unigram", "small")
RULES = ("right", "resampled", "trusting")

# What a draft says: the probabilities of the next letter after each letter of a text.
Draft = Callable[[Tensor], Tensor]


class _Unigram:
    """How often each letter occurs, whatever precedes it: a draft that reads nothing."""

    def __init__(self, letters: Tensor) -> None:
        counts = torch.bincount(letters, minlength=len(_ALPHABET)) + 1.0
        self.p = counts / counts.sum()

    def __call__(self, tokens: Tensor) -> Tensor:
        return self.p.expand(*tokens.shape, -1)


class _Reader:
    """A model that reads growing texts, and forgets what was rejected: cached up to there."""

    def __init__(self, model: Decoder) -> None:
        self.model, self.cache = model, model.new_cache()
        self.passes = 0

    def read(self, text: list[int]) -> Tensor:
        """The probabilities after each letter that it had not read, (n, V)."""
        new = torch.tensor([text[_length(self.cache) :]])
        self.passes += 1
        return self.model(new, cache=self.cache)[0].softmax(-1)

    def forget(self, length: int) -> None:
        self.cache.crop(min(_length(self.cache), length))


def _length(cache: ModelCache) -> int:
    return int(cache.length)


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Train a target and a small draft on letters; compare rules exactly, and sample."""
    steps, n_texts = _SIZES[size]
    letters = read_letters()
    numbers: Numbers = {
        "drafted": _DRAFTED,
        "overlap": {},
        "distance": {},
        "runs": {},
        "excess": {},
    }
    target = _train(letters, seed, steps, sub_progress(progress, 0.0, 0.6), dim=64, n_layers=2)
    small = _train(letters, seed, steps, sub_progress(progress, 0.6, 0.75), dim=16, n_layers=1)
    drafts: dict[str, Draft] = {
        "unigram": _Unigram(letters),
        "small": lambda tokens: small(tokens).softmax(-1),
    }
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(letters) - _PROMPT, (n_texts,), generator=generator)
    prompts = [letters[start : start + _PROMPT].tolist() for start in starts]
    numbers["parameters"] = {
        name: sum(p.numel() for p in model.decoder.parameters())
        for name, model in (("target", target), ("small", small))
    }
    with torch.no_grad():
        alone = [_sample(_Reader(target), prompt, generator) for prompt in prompts]
        numbers["excess"]["target"] = _measure_excess(target, alone)
        tokens = torch.tensor(alone)
        p = target(tokens)[:, _PROMPT - 1 : -1].softmax(-1).double().flatten(0, 1)
        for name in DRAFTS:
            q = drafts[name](tokens)[:, _PROMPT - 1 : -1].double().flatten(0, 1)
            numbers["overlap"][name] = float(torch.minimum(p, q).sum(-1).mean())
            numbers["distance"][name] = {rule: _distance(p, q, rule) for rule in RULES}
        for i, name in enumerate(DRAFTS):
            draft = _Reader(small) if name == "small" else _Unigram(letters)
            runs = [_speculate(target, draft, prompt, generator) for prompt in prompts]
            numbers["runs"][name] = _summarize(runs)
            numbers["excess"][name] = _measure_excess(target, [run.text for run in runs])
            progress(0.8 + 0.1 * i, numbers)
        trusted = [_sample(_Reader(small), prompt, generator) for prompt in prompts]
        numbers["excess"]["trusting"] = _measure_excess(target, trusted)
    return numbers


def read_letters() -> Tensor:
    """The English chapters as letters, blanks, commas and full stops."""
    folder = files("glassformer.course").joinpath("chapters", "en")
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".md"))
    texts = (_CODE.sub(" ", folder.joinpath(name).read_text("utf-8")) for name in names)
    kept = re.sub(rf"[^{_ALPHABET}]+", " ", " ".join(texts).lower())
    plain = re.sub(" +", " ", kept)
    return torch.tensor([_ALPHABET.index(letter) for letter in plain])


def _train(
    letters: Tensor, seed: int, steps: int, progress: ProgressCallback, *, dim: int, n_layers: int
) -> Decoder:
    torch.manual_seed(seed)
    config = Config(
        family="decoder",
        vocab_size=len(_ALPHABET),
        dim=dim,
        n_layers=n_layers,
        n_heads=4,
        hidden_dim=4 * dim,
        max_len=128,
        positions=Positions(kind="rotary"),
    )
    model = Decoder(config)

    def draw(generator: torch.Generator) -> Batch:
        starts = torch.randint(len(letters) - _LENGTH, (_BATCH, 1), generator=generator)
        tokens = letters[starts + torch.arange(_LENGTH + 1)]
        return tokens[:, :-1], tokens[:, 1:]

    rate = 3e-3 if n_layers > 1 else 1e-2
    train_toy(
        model, draw, steps=steps, schedule=warmup_cosine(rate, steps), seed=seed, progress=progress
    )
    return model


def accept_probability(p: Tensor, q: Tensor) -> Tensor:
    """With which probability a token that was drawn from q is accepted: min(1, p / q)."""
    return (p / q).clamp(max=1.0)


def replacement(p: Tensor, q: Tensor) -> Tensor:
    """What a rejected token is replaced from: what p has and q lacks."""
    lacking = (p - q).clamp(min=0.0)
    total = lacking.sum(-1, keepdim=True)
    return torch.where(total > 0, lacking / total, p)  # p = q: nothing is ever rejected


def _distance(p: Tensor, q: Tensor, rule: str) -> float:
    """The total variation between p and what a rule draws, on average over contexts, exactly."""
    accepted = q * accept_probability(p, q)
    rejected = 1 - accepted.sum(-1, keepdim=True)
    drawn = {
        "right": accepted + rejected * replacement(p, q),
        "resampled": accepted + rejected * p,
        "trusting": q,
    }[rule]
    return float((drawn - p).abs().sum(-1).mean() / 2)


class _Run(NamedTuple):
    text: list[int]
    passes: int
    offered: int
    accepted: int


def _speculate(
    model: Decoder, draft: _Reader | _Unigram, prompt: list[int], generator: torch.Generator
) -> _Run:
    """Draft a few letters, let the target read them in one pass, keep what it accepts."""
    text, target = list(prompt), _Reader(model)
    if isinstance(draft, _Reader):
        draft = _Reader(draft.model)
    offered = accepted = 0
    while len(text) < _PROMPT + _WRITTEN:
        guesses: list[int] = []
        proposals: list[Tensor] = []
        for _ in range(_DRAFTED):
            so_far = [*text, *guesses]
            read = draft.read(so_far) if isinstance(draft, _Reader) else draft(_last(so_far))
            proposals.append(read[-1])
            guesses.append(_draw(read[-1], generator))
        p = target.read([*text, *guesses])[-_DRAFTED - 1 :]
        n = 0
        while n < _DRAFTED and _accepts(p[n], proposals[n], guesses[n], generator):
            n += 1
        last = p[n] if n == _DRAFTED else replacement(p[n], proposals[n])
        text += [*guesses[:n], _draw(last, generator)]
        # What was rejected is forgotten; of two models that read, neither has read the newest.
        for reader in (target, draft):
            if isinstance(reader, _Reader):
                reader.forget(len(text) - 1)
        # Letters after the first rejection were never judged.
        offered, accepted = offered + min(n + 1, _DRAFTED), accepted + n
    return _Run(text[: _PROMPT + _WRITTEN], target.passes, offered, accepted)


def _last(text: list[int]) -> Tensor:
    return torch.tensor(text[-1:])


def _draw(p: Tensor, generator: torch.Generator) -> int:
    return int(torch.multinomial(p, 1, generator=generator))


def _accepts(p: Tensor, q: Tensor, guess: int, generator: torch.Generator) -> bool:
    chance = float(torch.rand((), generator=generator))
    return chance < float(accept_probability(p, q)[guess])


def _sample(reader: _Reader, prompt: list[int], generator: torch.Generator) -> list[int]:
    text = list(prompt)
    while len(text) < _PROMPT + _WRITTEN:
        text.append(_draw(reader.read(text)[-1], generator))
    return text


def _summarize(runs: list[_Run]) -> dict[str, float]:
    return {
        "accepted": sum(run.accepted for run in runs) / sum(run.offered for run in runs),
        "tokens_per_pass": _WRITTEN * len(runs) / sum(run.passes for run in runs),
    }


def _measure_excess(model: Decoder, texts: list[list[int]]) -> dict[str, float]:
    """How much more surprising texts are to the target than it expects, with standard error.

    Of texts that are distributed as the target says, the mean of −log p less the entropy is 0.
    """
    tokens = torch.tensor(texts)
    log_p = model(tokens)[:, _PROMPT - 1 : -1].double().log_softmax(-1)
    entropy = -(log_p.exp() * log_p).sum(-1)
    surprise = -log_p.gather(2, tokens[:, _PROMPT:, None])[..., 0]
    excess = (surprise - entropy).flatten()
    return {"mean": float(excess.mean()), "error": float(excess.std()) / math.sqrt(len(excess))}


def _reads_per_token(numbers: Numbers) -> float:
    """Weights that are read for a token with the small draft, as a share of the target's."""
    parameters, run = numbers["parameters"], numbers["runs"]["small"]
    cost = 1 + numbers["drafted"] * parameters["small"] / parameters["target"]
    return cost / run["tokens_per_pass"]


def judge(numbers: Numbers) -> Verdict:
    overlap, distance, runs = numbers["overlap"], numbers["distance"], numbers["runs"]
    errors = {name: each["mean"] / each["error"] for name, each in numbers["excess"].items()}
    exact = max(distance[name]["right"] for name in DRAFTS)
    apart = max(abs(errors[name]) for name in DRAFTS)
    gap = max(abs(runs[name]["accepted"] - overlap[name]) for name in DRAFTS)
    reads = _reads_per_token(numbers)
    return Verdict.of(
        # Four standard errors: by chance alone, one run in ten thousand lies further out.
        Check(
            "unchanged",
            exact < 1e-5 and apart < 4,
            {"distance": exact, "errors": apart},
        ),
        Check(
            "wrong",
            min(distance[name][rule] for name in DRAFTS for rule in RULES[1:]) > 0.02
            and errors["trusting"] > 3,
            {
                "resampled": min(distance[name]["resampled"] for name in DRAFTS),
                "trusting": min(distance[name]["trusting"] for name in DRAFTS),
                "errors": errors["trusting"],
            },
        ),
        Check(
            "overlap",
            gap < 0.12,
            {
                "small": overlap["small"],
                "small_accepted": runs["small"]["accepted"],
                "unigram": overlap["unigram"],
                "unigram_accepted": runs["unigram"]["accepted"],
            },
        ),
        Check(
            "passes",
            runs["small"]["tokens_per_pass"] > runs["unigram"]["tokens_per_pass"] > 1.2,
            {name: runs[name]["tokens_per_pass"] for name in DRAFTS},
        ),
        Check("reads", reads < 0.8, {"reads": reads}),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    distance, runs, excess = numbers["distance"], numbers["runs"], numbers["excess"]
    known = [name for name in DRAFTS if name in distance]
    run = [name for name in DRAFTS if name in runs]
    shown = [name for name in ("target", *DRAFTS, "trusting") if name in excess]
    return Chart(
        (
            Bars(
                title=texts("distances"),
                y=Axis(label=texts("distance"), least=0.0),
                names=tuple(texts(rule) for rule in RULES),
                series=tuple(
                    Series(name=texts(name), values=tuple(distance[name][rule] for rule in RULES))
                    for name in known
                ),
            ),
            Bars(
                title=texts("excesses"),
                y=Axis(label=texts("excess")),
                names=tuple(texts(f"from_{name}") for name in shown),
                series=(
                    Series(
                        name=texts("excess"), values=tuple(excess[name]["mean"] for name in shown)
                    ),
                ),
                is_signed=True,
            ),
            Bars(
                title=texts("passes"),
                y=Axis(label=texts("tokens_per_pass"), least=0.0),
                names=tuple(texts(name) for name in run),
                series=(
                    Series(
                        name=texts("measured"),
                        values=tuple(runs[name]["tokens_per_pass"] for name in run),
                    ),
                    Series(
                        name=texts("predicted"),
                        values=tuple(_predict(numbers["overlap"][name]) for name in run),
                    ),
                ),
                marks=(Mark(name=texts("without"), at=1.0),),
            ),
        )
    )


def _predict(alpha: float) -> float:
    """Tokens per pass if every token is accepted independently (Leviathan et al. 2023)."""
    return sum(alpha**n for n in range(_DRAFTED + 1))


EXPERIMENT = Experiment(
    name="speculative",
    look_at=(
        "school/lab/experiments/speculative.py:accept_probability",
        "school/lab/experiments/speculative.py:replacement",
        "functional/cache.py:GrowingCache",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
