"""Which heads of the writer know he from she: found by patching, ablation and weights, then tested.

Pairs of texts differ in one noun (king, queen), and the next word may be " he" or " she". The gap
is by how much more the model prefers " he" after the first than after the second. Heads are chosen
on some texts and tested on others, with other nouns.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.models import Decoder
from glassformer.models.checkpoints import load
from glassformer.render.chart import Axis, Bars, Chart, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress, sub_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.tracing import Ablate, Patch, Trace, change, watch
from glassformer.tracing.interventions import Intervention


class _Size(NamedTuple):
    texts: int  # to find heads on, and as many to test them on
    triples: int  # drawn at random, to compare with


_SIZES = {"quick": _Size(3, 6), "full": _Size(5, 12)}
_CHOSEN = 3
_TEXTS = (
    "The {} smiled, and then",
    "The {} went into the garden because",
    "The {} was very tired, for",
    "The {} could not sleep that night, and in the morning",
    "The {} said that",
    "At last the {} sat down by the fire, and",
    "When the {} saw the letter,",
    "I told the {} that",
    "It was late, and the {} was very tired, for",
    "As soon as the {} was alone,",
)
_NOUNS = (
    ("king", "queen"),
    ("father", "mother"),
    ("gentleman", "lady"),
    ("man", "woman"),
    ("boy", "girl"),
    ("son", "daughter"),
    ("brother", "sister"),
    ("husband", "wife"),
)
Head = tuple[int, int]  # layer and number


@dataclass(eq=False, slots=True)
class _Pairs:
    """One text with several nouns: first all of one gender, then all of the other."""

    model: Decoder
    tokens: Tensor
    place: int  # of the noun
    trace: Trace
    swapped: Trace  # of the same texts, each with the other noun
    gap: float

    def find_gap(self, *changes: Intervention) -> float:
        """How much more " he" is preferred after the first nouns; 0 where the noun is unknown."""
        with change(self.model, list(changes)):
            return _gap(self.model, _predict(self.model, self.tokens))

    def patch_heads(self, heads: Sequence[Head]) -> float:
        """The share of the way to the opposite preference: 1 where heads carry all of it."""
        patches = [Patch(_site(layer), self.swapped, head=head) for layer, head in heads]
        return (self.gap - self.find_gap(*patches)) / (2 * self.gap)

    def ablate_heads(self, heads: Sequence[Head]) -> float:
        """The share of the gap that is lost: 1 where none is left."""
        zeros = [Ablate(_site(layer), head=head) for layer, head in heads]
        return 1 - self.find_gap(*zeros) / self.gap


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Choose heads on some texts and nouns, and test the choice on others; the seed draws both."""
    n, n_triples = _SIZES[size]
    model = load("writer")
    assert isinstance(model, Decoder)
    dice = random.Random(seed)
    texts = dice.sample(_TEXTS, 2 * n)
    nouns = dice.sample(_NOUNS, len(_NOUNS))
    half = len(nouns) // 2
    heads = [(i, j) for i in range(model.config.n_layers) for j in range(model.config.n_heads)]
    numbers: Numbers = {"heads": [_name(head) for head in heads], "found": {}, "tested": {}}
    with torch.no_grad():
        known = [_read_pairs(model, text, nouns[:half]) for text in texts[:n]]
        numbers["found"] = _find_heads(known, heads, sub_progress(progress, 0, 0.6, numbers))
        chosen = {name: _choose(values, heads) for name, values in numbers["found"].items()}
        numbers["chosen"] = {name: [_name(h) for h in three] for name, three in chosen.items()}
        triples = [dice.sample(heads, _CHOSEN) for _ in range(n_triples)]
        other = [_read_pairs(model, text, nouns[half:]) for text in texts[n:]]
        numbers["tested"] = {
            name: _mean([pairs.patch_heads(three) for pairs in other])
            for name, three in chosen.items()
        }
        progress(0.8, numbers)
        numbers["tested"]["random"] = _mean(
            [pairs.patch_heads(three) for pairs in other for three in triples]
        )
        numbers |= _remove_heads(other, chosen["patched"]) | _remove_before(other)
    return numbers


def _read_pairs(model: Decoder, text: str, nouns: Sequence[tuple[str, str]]) -> _Pairs:
    assert model.tokenizer is not None
    first, second = (
        torch.tensor([model.tokenizer.encode(text.format(pair[i])) for pair in nouns])
        for i in (0, 1)
    )
    tokens, swapped = torch.cat([first, second]), torch.cat([second, first])
    traces = []
    for each in (tokens, swapped):
        with watch(model, residual=True) as trace:
            logits = _predict(model, each)
        traces.append(trace)
    (place,) = (first[0] != second[0]).nonzero()[0].tolist()
    return _Pairs(model, tokens, place, *traces, gap=-_gap(model, logits))


def _predict(model: Decoder, tokens: Tensor) -> Tensor:
    """The logits after the last token of each text."""
    return model.head(model.hidden(tokens)[:, -1], model.embedding.weight)


def _gap(model: Decoder, logits: Tensor) -> float:
    assert model.tokenizer is not None
    (he,), (she,) = (model.tokenizer.encode(w, add_special=False) for w in (" he", " she"))
    first, second = (logits[:, he] - logits[:, she]).chunk(2)
    return float(first.mean() - second.mean())


def _find_heads(
    known: Sequence[_Pairs], heads: Sequence[Head], progress: ProgressCallback
) -> dict[str, list[float]]:
    """Three measures of every head: what a patch changes, what zeros change, where it looks."""
    found: dict[str, list[float]] = {"patched": [], "ablated": [], "weight": []}
    before = [_predict(pairs.model, pairs.tokens).log_softmax(-1) for pairs in known]
    for head, _ in iterate_with_progress(list(heads), progress):
        found["patched"].append(_mean([pairs.patch_heads([head]) for pairs in known]))
        found["ablated"].append(
            _mean([_diverge(pairs, head, own) for pairs, own in zip(known, before, strict=True)])
        )
        found["weight"].append(_mean([_look(pairs, head) for pairs in known]))
    return found


def _diverge(pairs: _Pairs, head: Head, before: Tensor) -> float:
    """How far zeros move the whole prediction: the KL divergence, in nats."""
    with change(pairs.model, Ablate(_site(head[0]), head=head[1])):
        after = _predict(pairs.model, pairs.tokens).log_softmax(-1)
    return float((before.exp() * (before - after)).sum(-1).mean())


def _look(pairs: _Pairs, head: Head) -> float:
    """The weight of the noun for the last token."""
    site = pairs.trace[_site(head[0])]
    last = [site.weights(head[1], slice(-1, None), sequence=i) for i in range(len(pairs.tokens))]
    return float(torch.stack(last)[:, 0, pairs.place].mean())


def _remove_heads(other: Sequence[_Pairs], three: Sequence[Head]) -> Numbers:
    alone = [_mean([pairs.ablate_heads([head]) for pairs in other]) for head in three]
    return {"alone": alone, "together": _mean([pairs.ablate_heads(three) for pairs in other])}


def _remove_before(other: Sequence[_Pairs]) -> Numbers:
    """The first feed-forward network, before the noun: ablated there, and patched there."""
    part, ablated, patched = "decoder.0.mlp", [], []
    for pairs in other:
        before = list(range(pairs.place))
        ablated.append(abs(1 - pairs.find_gap(Ablate(part, positions=before)) / pairs.gap))
        same = pairs.find_gap(Patch(part, pairs.swapped, positions=before))
        patched.append(abs(1 - same / pairs.gap))
    return {"before_ablated": _mean(ablated), "before_patched": max(patched)}


def _choose(values: Sequence[float], heads: Sequence[Head]) -> list[Head]:
    order = sorted(range(len(heads)), key=lambda i: values[i], reverse=True)
    return [heads[i] for i in order[:_CHOSEN]]


def _site(layer: int) -> str:
    return f"decoder.{layer}.self"


def _name(head: Head) -> str:
    return f"{head[0]}.{head[1]}"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def judge(numbers: Numbers) -> Verdict:
    tested, found = numbers["tested"], numbers["found"]
    looked = sorted(zip(found["weight"], found["patched"], strict=True), reverse=True)[:6]
    carried = [effect for _, effect in looked]
    return Verdict.of(
        Check(
            "carried",
            tested["patched"] > 0.6 and tested["random"] < 0.4,
            {"heads": ", ".join(sorted(numbers["chosen"]["patched"])), **tested},
        ),
        Check(
            "ablation",
            tested["ablated"] < tested["patched"] - 0.1,
            {"heads": ", ".join(sorted(numbers["chosen"]["ablated"])), **tested},
        ),
        Check(
            "weight",
            min(carried) < max(carried) / 5,
            {"least": min(carried), "most": max(carried), "weight": looked[-1][0]},
        ),
        Check(
            "backup",
            numbers["together"] > sum(numbers["alone"]) + 0.1,
            {"sum": sum(numbers["alone"]), "together": numbers["together"]},
        ),
        # A patch there puts back what was there, so that only rounding can differ.
        Check(
            "before",
            numbers["before_ablated"] > 0.03 and numbers["before_patched"] < 1e-4,
            {"ablated": numbers["before_ablated"], "patched": numbers["before_patched"]},
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    found, tested = numbers["found"], numbers["tested"]
    heads = Bars(
        title=texts("found"),
        y=Axis(label=texts("share")),
        names=tuple(numbers["heads"]),
        series=tuple(
            Series(name=texts(name), values=tuple(found.get(name, ())))
            for name in ("patched", "weight")
        ),
    )
    chosen = Bars(
        title=texts("tested"),
        y=Axis(label=texts("carried"), least=0.0, most=1.0),
        names=tuple(texts(f"by_{name}") for name in tested),
        series=(Series(name=texts("carried"), values=tuple(tested.values())),),
    )
    removed = {}
    if "together" in numbers:
        removed = {"sum": sum(numbers["alone"]), "together": numbers["together"]}
    lost = Bars(
        title=texts("removed"),
        y=Axis(label=texts("lost"), least=0.0, most=1.0),
        names=tuple(texts(name) for name in removed),
        series=(Series(name=texts("lost"), values=tuple(removed.values())),),
    )
    return Chart((heads, chosen, lost))


EXPERIMENT = Experiment(
    name="patching",
    look_at=(
        "tracing/interventions/values.py:Patch",
        "analysis/sweeps.py:sweep",
        "school/lab/experiments/patching.py:measure",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
