"""Translating: the same weights in glassformer, CTranslate2 and transformers.

    python benchmarks/translating.py             the base shape, and the shipped model
    python benchmarks/translating.py --quick     3 rounds, batch 1, 2 threads
    python benchmarks/translating.py --device cuda --sentences 1000    see translating_many.py

Needs ctranslate2 and transformers (`pip install ctranslate2 transformers`). The base shape has
6 + 6 layers, width 512, 8 heads, hidden width 2,048, 32,000 tokens and random weights: it reads
24 tokens and must write 32. The shipped translator, which transformers has no place for, translates
sentences. Checked first, with exit code 1 on a breach: log-probabilities of all programs agree, and
so do the tokens of those in float32. Runs take turns; medians, with the range of all runs.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

import glassformer as gf
from glassformer.models import EncoderDecoder
from translating_programs import (
    CTranslate2,
    Ours,
    Program,
    Texts,
    Transformers,
    build_base,
    write_ctranslate2,
)

SENTENCES = (
    "Where is the station?",
    "I have never seen such a beautiful garden in my life.",
    "She told me that she would come back before the end of the month.",
    "The children were playing in front of the house when it started to rain.",
    "Could you please tell me how to get to the nearest hospital?",
    "He bought a new car last year, but he still takes the bus to work.",
    "If I had known that you were ill, I would have visited you.",
    "My brother and I used to go swimming in the river every summer.",
)
LANGUAGE = "fr"
NEW_TOKENS, SOURCE_TOKENS = 32, 24
SAME = 2e-4  # allowed difference of log-probabilities in float32, which are about −10
NEAR = 0.02  # the same for int8, mean absolute difference


class Check:
    """Collects breaches; the program ends with exit code 1 if there were any."""

    def __init__(self) -> None:
        self.breaches = 0

    def require(self, fine: bool, text: str) -> None:
        print(f"{'ok    ' if fine else 'BREACH'} {text}", flush=True)
        self.breaches += not fine


def check_scores(check: Check, programs: Sequence[Program], sources: Texts, targets: Texts) -> None:
    """Every program gives the same texts the same log-probabilities as the first."""
    first = torch.tensor([p for row in programs[0].score(sources, targets) for p in row])
    for program in programs[1:]:
        other = torch.tensor([p for row in program.score(sources, targets) for p in row])
        exact = "float32" in program.name
        error = float((other - first).abs().max() if exact else (other - first).abs().mean())
        check.require(
            error <= (SAME if exact else NEAR),
            f"log-probabilities of {program.name}: {'worst' if exact else 'mean'} error {error:.2e}"
            f" ({SAME if exact else NEAR} allowed)",
        )


def check_tokens(
    check: Check, programs: Sequence[Program], sources: Texts, *, beams: int, forced: int | None
) -> list[list[int]]:
    """Float32 programs write the same tokens as the first; the share of int8 is only shown."""
    first = programs[0].translate(sources, beams=beams, forced=forced)
    for program in programs[1:]:
        other = program.translate(sources, beams=beams, forced=forced)
        same = sum(a == b for a, b in zip(first, other, strict=True))
        text = f"beams {beams}: {program.name} writes {same} of {len(first)} texts alike"
        check.require(same == len(first) or "int8" in program.name, text)
    return first


def measure(
    works: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Seconds of each, taking turns; the order is turned around every time."""
    for work in works.values():
        work()
    spent: dict[str, list[float]] = {name: [] for name in works}
    for n in range(rounds):
        for name in list(works)[:: 1 if n % 2 else -1]:
            start = clock()
            works[name]()
            spent[name].append(clock() - start)
    return spent


def show_speed(label: str, spent: dict[str, list[float]], n: float, ours: Sequence[str]) -> None:
    """A line for each program: `n` tokens or sentences over seconds, and ours over it."""
    for name, times in spent.items():
        rates = [n / t for t in times]
        ratios = [
            f"{statistics.median(t / o for t, o in zip(times, spent[mine], strict=True)):.2f}"
            for mine in ours
        ]
        print(
            f"| {label} | {name} | {statistics.median(rates):.1f} "
            f"({min(rates):.1f}–{max(rates):.1f}) | {' | '.join(ratios)} |",
            flush=True,
        )


def list_programs(folder: Path, model: EncoderDecoder, *, threads: int) -> list[Program]:
    """Ours first; transformers only where it has the architecture."""
    torch.set_num_threads(threads)
    programs: list[Program] = [Ours(model), Ours(gf.quantize(model), "glassformer int8")]
    if (folder / "marian").is_dir():
        programs.append(Transformers(folder / "marian", model.special))
    programs += [
        CTranslate2(folder / "ctranslate2", model.special, compute_type=kind, threads=threads)
        for kind in ("float32", "int8")
    ]
    return programs


def compare_base(check: Check, wish: argparse.Namespace, folder: Path) -> None:
    """Greedy and beam search over random weights, a fixed number of tokens."""
    model = build_base()
    gf.save(model, folder / "marian", layout="marian")
    write_ctranslate2(model, folder / "ctranslate2")
    generator = torch.Generator().manual_seed(1)
    sources = torch.randint(2, 32_000, (8, SOURCE_TOKENS), generator=generator).tolist()
    for threads in wish.threads if wish.only != "memory" else []:
        programs = list_programs(folder, model, threads=threads)
        mine = [p.name for p in programs if isinstance(p, Ours)]
        if threads == wish.threads[0]:
            written = check_tokens(check, programs, sources, beams=1, forced=NEW_TOKENS)
            check_tokens(check, programs, sources, beams=4, forced=NEW_TOKENS)
            check_scores(check, programs, sources, written)
        heads = "".join(f" {name} / it |" for name in mine)
        print(f"\n| base shape | program | tokens/s |{heads}")
        print("|---|---|---|" + "---|" * len(mine))
        for beams in (1, 4):
            for batch in wish.batches:
                works = {
                    p.name: lambda p=p, beams=beams, batch=batch: p.translate(
                        sources[:batch], beams=beams, forced=NEW_TOKENS
                    )
                    for p in programs
                }
                label = f"{'greedy' if beams == 1 else f'beam {beams}'}, batch {batch}, "
                label += f"{threads} thread{'s' * (threads > 1)}"
                show_speed(label, measure(works, wish.rounds, wish.clock), batch * NEW_TOKENS, mine)


def compare_shipped(check: Check, wish: argparse.Namespace, folder: Path) -> None:
    """The shipped translator on sentences: from text to text."""
    model = gf.load("translator")
    assert isinstance(model, EncoderDecoder) and model.tokenizer is not None
    tokenizer = model.tokenizer
    write_ctranslate2(model, folder / "ctranslate2")

    def encode(texts: Sequence[str]) -> list[list[int]]:
        return [tokenizer.encode(f"<{LANGUAGE}> {text}") for text in texts]

    for threads in wish.threads:
        programs = list_programs(folder, model, threads=threads)
        mine = [p.name for p in programs if isinstance(p, Ours)]
        if threads == wish.threads[0]:
            written = check_tokens(check, programs, encode(SENTENCES), beams=1, forced=None)
            check_tokens(check, programs, encode(SENTENCES), beams=4, forced=None)
            check_scores(check, programs, encode(SENTENCES), written)
        heads = "".join(f" {name} / it |" for name in mine)
        print(f"\n| shipped translator | program | sentences/s |{heads}")
        print("|---|---|---|" + "---|" * len(mine))

        def translate(program: Program, beams: int, batch: int) -> list[str]:
            return [
                tokenizer.decode(tokens)
                for first in range(0, len(SENTENCES), batch)
                for tokens in program.translate(
                    encode(SENTENCES[first : first + batch]), beams=beams, forced=None
                )
            ]

        for beams in (1, 4):
            for batch in wish.batches:
                works = {
                    p.name: lambda p=p, beams=beams, batch=batch: translate(p, beams, batch)
                    for p in programs
                }
                label = f"{'greedy' if beams == 1 else f'beam {beams}'}, batch {batch}, "
                label += f"{threads} thread{'s' * (threads > 1)}"
                show_speed(label, measure(works, wish.rounds, wish.clock), len(SENTENCES), mine)


def show_memory(folder: Path) -> None:
    """Peak resident memory of processes that load the base shape and translate greedily."""
    print("\n| base shape, one process for each | peak resident memory, MiB | above its imports |")
    print("|---|---|---|")
    gf.save(build_base(), folder / "own")
    gf.save(gf.quantize(build_base()), folder / "own_int8")
    load = {
        "glassformer float32": "Ours(gf.load(folder / 'own'))",
        "glassformer int8": "Ours(gf.load(folder / 'own_int8'))",
        "transformers float32": "Transformers(folder / 'marian', special)",
        "CTranslate2 float32": "CTranslate2(folder / 'ctranslate2', special, "
        "compute_type='float32', threads=2)",
        "CTranslate2 int8": "CTranslate2(folder / 'ctranslate2', special, "
        "compute_type='int8', threads=2)",
    }
    for name, expression in load.items():
        code = f"""
import sys
from pathlib import Path
import ctranslate2, transformers, torch
import glassformer as gf
from glassformer.models import EncoderDecoder
from glassformer.text import SpecialTokens
from translating_programs import *
def read(field):
    return int(open('/proc/self/status').read().split(field)[1].split()[0]) / 1024
gf.load
folder, special = Path({str(folder)!r}), SpecialTokens(start=(0,), end=(1,), pad=0, never=(0,))
before = read('VmRSS:')
program = {expression}
program.translate([list(range(2, 26))], beams=1, forced=32)
print(read('VmHWM:'), before)
"""
        run = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parent,
        )
        peak, before = map(float, run.stdout.split()[-2:])
        print(f"| {name} | {peak:.0f} | {peak - before:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="runs of each program and setting")
    parser.add_argument("--quick", action="store_true", help="3 rounds, batch 1, 2 threads")
    parser.add_argument("--only", choices=("base", "shipped", "memory"), help="one part")
    parser.add_argument("--sentences", type=int, help="translate many in one call, and one by one")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of the many")
    parser.add_argument("--singly", type=int, default=100, help="how many of them one by one")
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument(
        "--processor-time",
        action="store_const",
        dest="clock",
        const=time.process_time,
        default=time.perf_counter,
        help="count the processor's seconds, for one thread on a machine that others use, too",
    )
    wish = parser.parse_args()
    if wish.quick:
        wish.rounds, wish.batches, wish.threads = 3, [1], [2]
    check = Check()
    if wish.sentences is not None:
        from translating_many import compare_many

        compare_many(check.require, wish)
        sys.exit(1 if check.breaches else 0)
    with tempfile.TemporaryDirectory() as base, tempfile.TemporaryDirectory() as shipped:
        if wish.only in (None, "base", "memory"):
            compare_base(check, wish, Path(base))
            show_memory(Path(base))
        if wish.only in (None, "shipped"):
            compare_shipped(check, wish, Path(shipped))
    sys.exit(1 if check.breaches else 0)


if __name__ == "__main__":
    main()
