"""Many sentences from text to text: the shipped translator here and in CTranslate2.

    python benchmarks/translating.py --device cuda --sentences 1000 --rounds 3

The sentences are English ones of this repository's documents, of unequal lengths, into French. All
go into one call, and some one by one. CTranslate2 runs on the GPU if it can, otherwise on all
cores. transformers has no model of the shipped kind: it and ours translate sources of the same
lengths with the base shape and random weights, 32 new tokens for each.

Checked first: our float32 translations are those of the CPU, and CTranslate2's are ours without the
restriction to tokens of one language, which it does not have. Texts that differ must be ties by the
log-probabilities that the CPU gives them (`measure_gap`).
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

import glassformer as gf
from glassformer.generation import rank_translations
from glassformer.models import EncoderDecoder
from glassformer.text import Tokenizer
from translating_programs import (
    CTranslate2,
    Ours,
    Program,
    Transformers,
    build_base,
    write_ctranslate2,
)

Require = Callable[[bool, str], None]
Tokens = Sequence[Sequence[int]]

ROOT = Path(__file__).parent.parent
LANGUAGE, NEW_TOKENS = "fr", 32
BATCH_TOKENS = 16_384  # source tokens of a batch of CTranslate2
FEW = 16  # sources of the base shape that are translated one by one
TOKEN_TIE = 4e-4  # of two log-probabilities, each within translating.SAME
MEAN_TIE = 1e-4  # of the mean log-probability of whole texts
_SENTENCE = re.compile(r"[A-Z][A-Za-z0-9 ,;:'\"-]{8,}[.?!]")


def collect_sentences(n: int, readable: frozenset[str]) -> list[str]:
    """The first n sentences of the course and the documents, without markup."""
    course, documents = ROOT / "src" / "glassformer" / "course", ROOT / "docs"
    files = [
        *sorted((course / "chapters" / "en").glob("*.md")),
        *sorted((course / "exercises").glob("*/en.md")),
        *sorted(path for path in documents.glob("*.md") if ".zh" not in path.name),
        *sorted((documents / "decisions").glob("*.md")),
    ]
    found: dict[str, None] = {}
    for path in files:
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for paragraph in re.split(r"\n\s*\n|\n(?=[-#|>*\d])", text):
            for sentence in re.split(r"(?<=[.?!])\s+", " ".join(paragraph.split())):
                if _SENTENCE.fullmatch(sentence) and readable.issuperset(sentence):
                    found[sentence] = None
    if len(found) < n:
        sys.exit(f"The documents have {len(found)} sentences; {n} were asked for.")
    return list(found)[:n]


def load_translator(device: str, dtype: torch.dtype) -> EncoderDecoder:
    model = gf.load("translator")
    assert isinstance(model, EncoderDecoder)
    return model.to(device, dtype)


@torch.no_grad()
def score_tokens(model: EncoderDecoder, source: Sequence[int], target: Sequence[int]) -> Tensor:
    """The log-probabilities of the tokens of a translation and of its end."""
    special = model.special
    tokens = torch.tensor([*target, special.end[0]])
    logits = model(torch.tensor([source]), torch.tensor([[*special.start, *target]]))[0]
    logits[:, list(special.never)] = -torch.inf
    logs = logits[len(special.start) - 1 :].log_softmax(-1)
    return logs.gather(-1, tokens[:, None])[:, 0]


def measure_gap(
    model: EncoderDecoder, source: Sequence[int], one: Sequence[int], two: Sequence[int], beams: int
) -> float:
    """How far from a tie two different texts are.

    Greedy texts part at one token and go on differently: the gap is that of these two tokens. Beam
    search compares whole texts by their mean log-probability.
    """
    logs = [score_tokens(model, source, text) for text in (one, two)]
    if beams > 1:
        return abs(float(logs[0].mean() - logs[1].mean()))
    same = 0
    while same < min(len(one), len(two)) and one[same] == two[same]:
        same += 1
    return abs(float(logs[0][same] - logs[1][same]))


def compare_texts(
    require: Require,
    name: str,
    model: EncoderDecoder,
    sources: Tokens,
    ours: Tokens,
    theirs: Tokens,
    *,
    beams: int,
) -> None:
    """Texts that differ must be ties to the model on the CPU."""
    allowed = TOKEN_TIE if beams == 1 else MEAN_TIE
    gaps = [
        measure_gap(model, source, mine, other, beams)
        for source, mine, other in zip(sources, ours, theirs, strict=True)
        if list(mine) != list(other)
    ]
    over = sum(gap > allowed for gap in gaps)
    text = f"beams {beams}, {name}: {len(gaps)} of {len(sources)} texts differ"
    if gaps:
        text += f", by at most {max(gaps):.1e} ({allowed:.0e} allowed; {over} over)"
    require(not over, text)


def find_ctranslate2(folder: Path) -> tuple[str, int]:
    """Where CTranslate2 can run, tried in a process that may die: device and threads."""
    code = (
        "import sys, torch, ctranslate2\n"
        "found = ctranslate2.Translator(sys.argv[1], device='cuda', compute_type='float16')\n"
        "found.translate_batch([['5', '6']], beam_size=2, max_decoding_length=4)"
    )
    start = time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-c", code, str(folder / "float32")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if run.returncode == 0:
        print(f"CTranslate2 runs on the GPU (ready after {time.perf_counter() - start:.0f} s)")
        return "cuda", 1
    why = (run.stderr.strip().splitlines() or [f"exit code {run.returncode}"])[-1]
    print(f"CTranslate2 runs on {os.cpu_count()} CPU cores; on the GPU: {why}")
    return "cpu", os.cpu_count() or 1


def race(label: str, works: dict[str, Callable[[], object]], n: int, rounds: int) -> None:
    """Sentences per second of each, in turns: the median, and the range of all rounds."""
    first = dict.fromkeys(works, 0.0)
    times: dict[str, list[float]] = {name: [] for name in works}
    for i in range(rounds + 1):
        for name, work in works.items():
            start = time.perf_counter()
            work()  # its texts are on the host when it returns
            spent = time.perf_counter() - start
            if i:
                times[name].append(spent)
            else:
                first[name] = spent
    mine = next(iter(times))
    for name, spent in times.items():
        rates = sorted(n / each for each in spent)
        ratio = sorted(a / b for a, b in zip(spent, times[mine], strict=True))
        print(
            f"| {label} | {name} | {rates[len(rates) // 2]:,.0f} ({rates[0]:,.0f}–{rates[-1]:,.0f})"
            f" | {ratio[len(ratio) // 2]:.2f} | {first[name]:.2f} |",
            flush=True,
        )


def show_head(title: str, first: str) -> None:
    print(f"\n| {title} | program | sentences/s | {first} / it | first call, s |")
    print("|---|---|---|---|---|")


def in_turn(work: Callable[[list[str]], object], texts: Sequence[str]) -> Callable[[], object]:
    return lambda: [work([text]) for text in texts]


def compare_shipped(require: Require, wish: argparse.Namespace, folder: Path) -> None:
    """The shipped translator, from text to text."""
    device = wish.device
    exact = load_translator("cpu", torch.float32)
    tokenizer = exact.tokenizer
    assert tokenizer is not None and tokenizer.coverage is not None
    texts = collect_sentences(wish.sentences, tokenizer.coverage.characters)
    sources = tokenizer.encode_many([f"<{LANGUAGE}> {text}" for text in texts])
    lengths = sorted(map(len, sources))
    print(
        f"{len(texts)} sentences of {lengths[0]} to {lengths[-1]} tokens, median "
        f"{lengths[len(lengths) // 2]}"
    )
    write_ctranslate2(exact, folder)
    single = load_translator(device, torch.float32)
    names = ["float32", "float16"] if device == "cuda" else ["float32"]
    where, threads = find_ctranslate2(folder) if device == "cuda" else ("cpu", 2)
    peers = [
        CTranslate2(
            folder,
            exact.special,
            compute_type=kind,
            threads=threads,
            device=where,
            batch_tokens=BATCH_TOKENS,
        )
        for kind in ("float32", "float16" if where == "cuda" else "int8")
    ]
    for beams in (1, 4):
        ours, free = (translate_tokens(single, texts, beams, restricted=r) for r in (True, False))
        plain = translate_tokens(exact, texts, beams, restricted=True)
        name = f"{device} beside cpu"
        compare_texts(require, name, exact, sources, plain, ours, beams=beams)
        theirs = peers[0].translate(sources, beams=beams, forced=None)
        compare_texts(require, "CTranslate2", exact, sources, free, theirs, beams=beams)
    models = {
        f"glassformer {name}": load_translator(device, getattr(torch, name)) for name in names
    }
    show_head("shipped translator", "glassformer float32")
    for beams in (1, 4):
        works: dict[str, Callable[[list[str]], object]] = {}
        for name, model in models.items():
            works[name] = lambda texts, model=model, beams=beams: gf.translate(
                model, texts, to=LANGUAGE, beams=beams
            )
            works[f"{name}, unrestricted"] = lambda texts, model=model, beams=beams: gf.translate(
                model, texts, to=LANGUAGE, beams=beams, restricted=False
            )
        for peer in peers:
            works[f"{peer.name}, {where}"] = lambda texts, peer=peer, beams=beams: translate_texts(
                peer, tokenizer, texts, beams
            )
        label = "greedy" if beams == 1 else f"beam {beams}"
        together = {name: lambda work=work: work(texts) for name, work in works.items()}
        race(f"{label}, one call", together, len(texts), wish.rounds)
        some = texts[:: max(1, len(texts) // wish.singly)][: wish.singly]
        alone = {
            name: in_turn(work, some)
            for name, work in works.items()
            if not name.endswith("unrestricted")
        }
        race(f"{label}, batches of 1", alone, len(some), wish.rounds)


def translate_tokens(
    model: EncoderDecoder, texts: Sequence[str], beams: int, *, restricted: bool
) -> list[tuple[int, ...]]:
    found = rank_translations(model, texts, to=LANGUAGE, beams=beams, restricted=restricted)
    return [best[0].tokens for best in found]


def translate_texts(
    program: Program, tokenizer: Tokenizer, texts: Sequence[str], beams: int
) -> list[str]:
    sources = tokenizer.encode_many([f"<{LANGUAGE}> {text}" for text in texts])
    return [tokenizer.decode(each) for each in program.translate(sources, beams=beams, forced=None)]


def compare_base(wish: argparse.Namespace, folder: Path) -> None:
    """The base shape with random weights, in ours and in transformers: tokens to tokens."""
    model = build_base()
    tokenizer = gf.load("translator").tokenizer
    assert tokenizer is not None and tokenizer.coverage is not None
    texts = collect_sentences(wish.sentences, tokenizer.coverage.characters)
    generator = torch.Generator().manual_seed(1)
    sources = [
        torch.randint(2, 32_000, (len(tokens),), generator=generator).tolist()
        for tokens in tokenizer.encode_many(texts)
    ]
    gf.save(model, folder / "marian", layout="marian")
    name = "float16" if wish.device == "cuda" else "float32"
    dtype = getattr(torch, name)
    programs: list[Program] = [
        Ours(model.to(wish.device, dtype), f"glassformer {name}"),
        Transformers(folder / "marian", model.special, device=wish.device, dtype=dtype),
    ]
    show_head("base shape, 32 new tokens", f"glassformer {name}")
    for beams in (1, 4):
        label = "greedy" if beams == 1 else f"beam {beams}"
        for batch, some in ((len(sources), sources), (1, sources[:FEW])):
            works: dict[str, Callable[[], object]] = {
                program.name: lambda program=program, batch=batch, some=some, beams=beams: [
                    program.translate(some[i : i + batch], beams=beams, forced=NEW_TOKENS)
                    for i in range(0, len(some), batch)
                ]
                for program in programs
            }
            race(
                f"{label}, {'one call' if batch > 1 else 'batches of 1'}",
                works,
                len(some),
                wish.rounds,
            )


def compare_many(require: Require, wish: argparse.Namespace) -> None:
    """The checks and both races."""
    if wish.device == "cuda":
        print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, {os.cpu_count()} cores")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as shipped, tempfile.TemporaryDirectory() as base:
        if wish.only in (None, "shipped"):
            compare_shipped(require, wish, Path(shipped))
        if wish.only in (None, "base"):
            compare_base(wish, Path(base))
    print(f"\n{time.perf_counter() - start:.0f} s in all")
