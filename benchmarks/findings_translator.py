"""Which cross-attention head of the included translator carries the alignment.

python benchmarks/findings_translator.py DIR     DIR as recipes/data/tatoeba.py makes it

Every head is scored on validation sentences: how often the source token that it attends to most is
the one that IBM Model 1, estimated from the training pairs, aligns with the token being predicted,
or with the one just read, whichever is more often. Then heads are removed while the test sentences
are translated, greedily and with caches: each alone, each layer, the best few together, and as many
others, drawn at random.
"""

import argparse
import json
import random
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import glassformer as gf
from glassformer.training.scores import translate_all
from word_alignment import Model1

Head = tuple[int, int]  # layer, head
TOKENIZERS = {"zh": "zh", "fr": "13a"}


class Texts(NamedTuple):
    """Test sentences of one language, with all their translations."""

    sources: list[str]
    references: list[list[str]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--sentences", type=int, default=320, help="of each language, translated")
    parser.add_argument("--train", type=int, default=40_000, help="pairs for IBM Model 1")
    parser.add_argument("--draws", type=int, default=5, help="random sets of heads")
    parser.add_argument("--how", choices=("mean", "zero"), default="mean")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    torch.set_num_threads(1)
    model: Any = gf.load("translator")
    for language in TOKENIZERS:
        study(model, language, args)
    return 0


def study(model: Any, language: str, args: argparse.Namespace) -> None:
    pairs = {
        part: read_pairs(model, args.data, part, language, args.seed) for part in ("train", "valid")
    }
    aligner = Model1(pairs["train"][: args.train])
    scores = score_heads(model, pairs["valid"][:300], aligner)
    ranked = sorted(scores["read"], key=lambda head: -max(each[head] for each in scores.values()))
    changes = Removal(model, pairs["valid"], args.how)
    texts = read_test(args.data, language, args)
    bleu = Bleu(texts, TOKENIZERS[language], args.seed)
    whole = translate(model, texts, [])
    print(f"\n{language}: {len(texts.sources)} test sentences, BLEU {bleu.describe(whole)}")
    lost = {}
    for head in ranked:
        found = translate(model, texts, changes([head]))
        lost[head] = bleu.score(whole) - bleu.score(found)
        print(
            f"  decoder.{head[0]}.cross.{head[1]}  aligned with the predicted token "
            f"{scores['predicted'][head]:.2f}, with the one read {scores['read'][head]:.2f}; "
            f"removed: BLEU {bleu.describe(found, whole)}",
            flush=True,
        )
    order = [lost[head] for head in ranked]
    print(f"  rank correlation of score and loss: {correlate_ranks(order):.2f}")
    for layer in sorted({layer for layer, _ in ranked}):
        found = translate(model, texts, changes([head for head in ranked if head[0] == layer]))
        print(f"  all of decoder.{layer}.cross removed: BLEU {bleu.describe(found, whole)}")
    draw = random.Random(args.seed)
    found = translate(model, texts, changes(ranked))
    print(f"  all {len(ranked)} removed: BLEU {bleu.describe(found, whole)}", flush=True)
    for n in (4, 8):
        best, others = ranked[:n], ranked[n:]
        found = translate(model, texts, changes(best))
        print(f"  the {n} best removed: BLEU {bleu.describe(found, whole)}", flush=True)
        drawn = []
        for _ in range(args.draws if len(others) > n else 1):
            chosen = sorted(draw.sample(others, n))
            found = translate(model, texts, changes(chosen))
            drawn.append(bleu.score(found))
            print(
                f"    {n} others, {name_heads(chosen)}: BLEU {bleu.describe(found, whole)}",
                flush=True,
            )
        print(
            f"  {n} others, {len(drawn)} draws: mean {statistics.mean(drawn):.1f}, "
            f"{min(drawn):.1f} … {max(drawn):.1f}"
        )


def name_heads(heads: Sequence[Head]) -> str:
    return " ".join(f"{layer}.{head}" for layer, head in heads)


def read_lines(data: Path, part: str, language: str, seed: int) -> list[tuple[str, str]]:
    """Sources, with the tag of the language, and targets; shuffled."""
    sides = [
        (data / f"{part}.en-{language}.{code}").read_text(encoding="utf-8").splitlines()
        for code in ("en", language)
    ]
    pairs = [(f"<{language}> {a}", b) for a, b in zip(*sides, strict=True)]
    random.Random(seed).shuffle(pairs)
    return pairs


def read_pairs(
    model: Any, data: Path, part: str, language: str, seed: int
) -> list[tuple[list[int], list[int]]]:
    """The tokens of at most 60,000 pairs."""
    pairs = read_lines(data, part, language, seed)[:60_000]
    encode = model.tokenizer.encode_many
    source = encode([a for a, _ in pairs])
    target = encode([b for _, b in pairs])
    return [(list(a), list(b)) for a, b in zip(source, target, strict=True)]


def read_test(data: Path, language: str, args: argparse.Namespace) -> Texts:
    """Held-out sentences; the same ones in every run of a seed."""
    lines = (data / f"test.en-{language}.jsonl").read_text(encoding="utf-8").splitlines()
    chosen = [json.loads(line) for line in lines]
    random.Random(args.seed).shuffle(chosen)
    chosen = chosen[: args.sentences]
    sources = [f"<{language}> {each['source']}" for each in chosen]
    return Texts(sources, [each["references"] for each in chosen])


@torch.no_grad()
def run(model: Any, source: Sequence[int], target: Sequence[int]) -> Tensor:
    start = list(model.special.start) or [model.special.begin]
    return model(torch.tensor([source]), torch.tensor([[*start, *target[:-1]]]))


def score_heads(
    model: Any, pairs: Sequence[tuple[list[int], list[int]]], aligner: Model1
) -> dict[str, dict[Head, float]]:
    """How often the arg-max of a head is the aligned token, for the token predicted and read."""
    hits: dict[str, dict[Head, list[float]]] = {"predicted": {}, "read": {}}
    by_chance, by_diagonal = [], []
    for source, target in pairs:
        links = aligner.align(source, target, least=0.5)
        with gf.watch(model) as trace:
            run(model, source, target)
        for layer in range(model.config.n_decoder_layers or model.config.n_layers):
            most = trace[f"decoder.{layer}.cross"].weights().argmax(-1)  # H L
            for i, j in links.items():
                for h in range(len(most)):
                    hits["predicted"].setdefault((layer, h), []).append(float(most[h, i] == j))
                    if i + 1 < most.shape[1]:
                        hits["read"].setdefault((layer, h), []).append(float(most[h, i + 1] == j))
        by_chance += [1 / len(source)] * len(links)
        slope = len(source) / len(target)
        by_diagonal += [float(round(i * slope) == j) for i, j in links.items()]
    print(
        f"\n{len(by_chance)} aligned tokens of {len(pairs)} validation sentences: by chance "
        f"{statistics.mean(by_chance):.2f}, on the diagonal {statistics.mean(by_diagonal):.2f}"
    )
    return {
        kind: {head: statistics.mean(each) for head, each in found.items()}
        for kind, found in hits.items()
    }


class Removal:
    """Interventions that remove heads: zeros, or the mean of each over validation sentences."""

    def __init__(self, model: Any, pairs: Sequence[tuple[list[int], list[int]]], how: str) -> None:
        self.how = how
        self.trace = None
        if how == "mean":  # targets of one length, so that no position is padding
            length = max(range(6, 16), key=lambda n: sum(len(t) == n for _, t in pairs))
            chosen = [pair for pair in pairs if len(pair[1]) == length][:64]
            start = list(model.special.start) or [model.special.begin]
            width = max(len(source) for source, _ in chosen)
            lengths = torch.tensor([len(source) for source, _ in chosen])
            pad = model.special.pad or 0
            source = [[*each, *[pad] * (width - len(each))] for each, _ in chosen]
            target = [[*start, *each[:-1]] for _, each in chosen]
            with torch.no_grad(), gf.watch(model) as self.trace:
                model(
                    torch.tensor(source),
                    torch.tensor(target),
                    source_mask=gf.Padding(lengths),
                )

    def __call__(self, heads: Sequence[Head]) -> list[Any]:
        by_layer: dict[int, list[int]] = {}
        for layer, head in heads:
            by_layer.setdefault(layer, []).append(head)
        return [
            gf.Ablate(f"decoder.{layer}.cross", head=each, how=self.how, of=self.trace)  # type: ignore[arg-type]
            for layer, each in by_layer.items()
        ]


def translate(model: Any, texts: Texts, changes: Sequence[Any]) -> list[str]:
    if not changes:
        return translate_all(model, texts.sources)
    with gf.change(model, list(changes), rows=[0], layers=[0]):
        return translate_all(model, texts.sources)


class Bleu:
    """Corpus BLEU by sacreBLEU, and its spread over resampled sentences."""

    def __init__(self, texts: Texts, tokenize: str, seed: int) -> None:
        from sacrebleu.metrics.bleu import BLEU

        self.metric = BLEU(tokenize=tokenize)
        most = max(map(len, texts.references))
        self.columns = [
            [each[i] if i < len(each) else None for each in texts.references] for i in range(most)
        ]
        n = len(texts.sources)
        self.samples = np.random.default_rng(seed).integers(0, n, (1000, n))

    def _count(self, found: Sequence[str]) -> np.ndarray:
        """What each sentence counts: lengths, matches and totals."""
        stats = self.metric._extract_corpus_statistics(list(found), self.columns)
        return np.array(stats)

    def _compute(self, counts: np.ndarray) -> float:
        return self.metric._compute_score_from_stats(counts.tolist()).score

    def score(self, found: Sequence[str]) -> float:
        return self._compute(self._count(found).sum(0))

    def describe(self, found: Sequence[str], whole: Sequence[str] | None = None) -> str:
        """The score with its 95 % interval; or the difference to the whole model's, paired."""
        counts = self._count(found)
        if whole is None:
            drawn = [self._compute(counts[rows].sum(0)) for rows in self.samples]
            low, high = np.percentile(drawn, [2.5, 97.5])
            return f"{self.score(found):.1f} (95 %: {low:.1f} … {high:.1f})"
        others = self._count(whole)
        apart = [
            self._compute(counts[rows].sum(0)) - self._compute(others[rows].sum(0))
            for rows in self.samples
        ]
        low, high = np.percentile(apart, [2.5, 97.5])
        change = self.score(found) - self.score(whole)
        return f"{self.score(found):.1f}, {change:+.1f} (95 %: {low:+.1f} … {high:+.1f})"


def correlate_ranks(values: Sequence[float]) -> float:
    """Spearman's correlation of falling scores with these values.

    >>> correlate_ranks([3.0, 2.0, 1.0])
    1.0
    """
    ranks = np.argsort(np.argsort(-np.asarray(values)))
    return round(float(np.corrcoef(np.arange(len(values)), ranks)[0, 1]), 4)


if __name__ == "__main__":
    sys.exit(main())
