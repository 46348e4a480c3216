"""A lexical shortlist: what it gains on a CPU, and what it costs in quality.

    python benchmarks/shortlist.py --data DIR [--multi30k DIR] [--threads 2]

DIR is made by recipes/data/tatoeba.py; its test sentences, each with all its translations as
references, are what nothing was trained on. Multi30k's captions are of another kind. Checked first,
with exit code 1 on a breach: every token of a translation is on its shortlist, and C, PyTorch's
operations and the model's modules find the same translations. Then BLEU, chrF and how many
translations stay the same; then runs with and without the shortlist take turns.
"""

import argparse
import gzip
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest.mock import patch

import torch

import glassformer as gf
from glassformer.generation import beam_search, direct, rank_translations, sessions
from glassformer.generation.source_text import read_sources
from glassformer.models import EncoderDecoder
from translating_programs import build_base

MOST_LOST = 0.5  # BLEU
LANGUAGES = {"zh": "zh", "fr": "13a"}  # and how their BLEU cuts texts into words
N_TIMED = 64


def read_texts(args: argparse.Namespace) -> Iterator[tuple[str, str, list[str], list[list[str]]]]:
    """A language, where its texts are from, the texts, and the references of each."""
    for code in LANGUAGES:
        lines = (args.data / f"test.en-{code}.jsonl").read_text(encoding="utf-8").splitlines()
        found = [json.loads(line) for line in lines[: args.sentences]]
        yield code, "Tatoeba", [x["source"] for x in found], [x["references"] for x in found]
    if args.multi30k is not None:
        source, target = (
            gzip.decompress((args.multi30k / f"raw/test_2016_flickr.{code}.gz").read_bytes())
            .decode()
            .splitlines()[: args.sentences]
            for code in ("en", "fr")
        )
        yield "fr", "Multi30k 2016", source, [[text] for text in target]


@contextmanager
def by(way: str) -> Iterator[None]:
    """Decode by PyTorch's operations instead of C, or by the model's modules."""
    if way == "operations":
        with patch.object(direct, "find_native", lambda _: None):
            yield
    elif way == "modules":
        with patch.object(sessions, "choose_direct", lambda *_: None):
            yield
    else:
        yield


def check(model: EncoderDecoder, texts: Sequence[str], code: str) -> bool:
    """Whether all ways of decoding find the same, on the shortlist."""
    found, fine = {}, True
    for way in ("C", "operations", "modules"):
        with by(way):
            found[way] = rank_translations(model, texts, to=code, shortlist=True)
    for i, source in enumerate(read_sources(model, texts, code, shortlist=True)):
        best = found["C"][i][0]
        if source.forbidden is not None and bool(source.forbidden[[*best.tokens]].any()):
            print(f"BREACH {texts[i]!r}: {best.text!r} has a token that is not on its shortlist")
            fine = False
        for way in ("operations", "modules"):
            other = found[way][i][0]
            if abs(other.score - best.score) > 1e-4:
                print(f"BREACH {texts[i]!r}: C has {best}, {way} {other}")
                fine = False
    print(f"{code}: checked {len(texts)} translations by C, PyTorch's operations and modules")
    return fine


def measure_quality(args: argparse.Namespace, model: EncoderDecoder) -> bool:
    """Scores of the same sentences with and without the shortlist."""
    import sacrebleu

    fine = True
    print(
        "\n| English to | sentences | beams | tokens of 8,000 | BLEU | with | chrF | with | same |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for code, corpus, texts, references in read_texts(args):
        most = max(map(len, references))
        columns = [[r[i] if i < len(r) else None for r in references] for i in range(most)]
        sizes = [
            int((~source.forbidden).sum())
            for source in read_sources(model, texts, code, shortlist=True)
            if source.is_shortened and source.forbidden is not None
        ]
        for beams in (1, 4):
            found = [
                [
                    best[0].text
                    for best in rank_translations(
                        model, texts, to=code, beams=beams, shortlist=short
                    )
                ]
                for short in (False, True)
            ]
            bleu = [
                sacrebleu.corpus_bleu(each, columns, tokenize=LANGUAGES[code]).score
                for each in found
            ]
            chrf = [sacrebleu.corpus_chrf(each, columns).score for each in found]
            same = sum(a == b for a, b in zip(*found, strict=True)) / len(texts)
            fine &= bleu[0] - bleu[1] <= MOST_LOST
            print(
                f"| {code}, {corpus} | {len(texts)} | {beams} | {statistics.mean(sizes):.0f} | "
                f"{bleu[0]:.2f} | {bleu[1]:.2f} | {chrf[0]:.2f} | {chrf[1]:.2f} | {same:.1%} |",
                flush=True,
            )
    return fine


def time_in_turns(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """The seconds of each in every round; the first round does not count."""
    for work in works.values():
        work()
    spent: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            spent[name].append(time.perf_counter() - start)
    return spent


def show_speed(name: str, spent: dict[str, list[float]]) -> None:
    without, with_, again = spent.values()
    ratios = [(a + c) / 2 / b for a, b, c in zip(without, with_, again, strict=True)]
    noise = [a / c for a, c in zip(without, again, strict=True)]
    print(
        f"| {name} | **{statistics.median(ratios):.2f}** ({min(ratios):.2f}–{max(ratios):.2f}) | "
        f"{statistics.median(noise):.3f} |",
        flush=True,
    )


def time_settings(
    name: str,
    model: EncoderDecoder,
    work: Callable[[EncoderDecoder, int, int, bool], object],
    rounds: int,
) -> None:
    """`work` is given a model, how many beams and texts at a time, and whether by the shortlist."""
    for kind, each in {"float32": model, "int8": gf.quantize(model)}.items():
        for beams in (1, 4):
            for batch in (1, 8):
                run = partial(work, each, beams, batch)
                works = {
                    "without": partial(run, False),
                    "with": partial(run, True),
                    "again": partial(run, False),
                }
                setting = f"{name}, {kind}, {beams} beam{'s'[: beams - 1]}, batch {batch}"
                show_speed(setting, time_in_turns(works, rounds))


def measure_speed(args: argparse.Namespace, model: EncoderDecoder) -> None:
    """How many times as fast with it: the shipped translator, and a larger vocabulary."""
    print("\n| | as fast as without, by a factor | without, against itself |")
    print("|---|---|---|")
    for code, corpus, texts, _ in read_texts(args):
        if corpus != "Tatoeba":
            continue

        def translate(each, beams, batch, short, code=code, texts=texts):
            for part in batched(texts[:: max(1, len(texts) // N_TIMED)][:N_TIMED], batch):
                rank_translations(each, part, to=code, beams=beams, shortlist=short)

        time_settings(code, model, translate, args.rounds)
    source = torch.randint(3, 32_000, (8, 24), generator=torch.Generator().manual_seed(1)).tolist()
    forbidden = torch.ones(8, 32_000, dtype=torch.bool)
    forbidden[:, ::40] = False  # 800 tokens

    def search(each, beams, batch, short):
        beam_search(
            each,
            [[1]] * batch,
            source=source[:batch],
            max_new_tokens=32,
            beams=beams,
            forbidden=forbidden[:batch] if short else None,
            renormalize=True,
        )

    time_settings("base shape", build_base(), search, args.rounds)


def batched(texts: Sequence[str], n: int) -> Iterator[Sequence[str]]:
    """`n` of them at a time."""
    return (texts[i : i + n] for i in range(0, len(texts), n))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", required=True)
    parser.add_argument("--multi30k", type=Path, metavar="DIR")
    parser.add_argument("--model", default="translator")
    parser.add_argument("--sentences", type=int, default=1000, help="of each language, for BLEU")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("quality", "speed"))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model, fine = gf.load(args.model), True
    for code, corpus, texts, _ in read_texts(args):
        if corpus == "Tatoeba":
            fine &= check(model, texts[:40], code)
    if args.only in (None, "quality"):
        fine &= measure_quality(args, model)
    if args.only in (None, "speed"):
        measure_speed(args, model)
    if not fine:
        print(f"BREACH: a result is wrong, or more than {MOST_LOST} BLEU are lost.")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
