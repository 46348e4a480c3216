"""Sentence pairs of Tatoeba for one translator from English to Chinese and French.

    python recipes/data/tatoeba.py --chinese cmn-eng.tsv.gz --french fra-eng.tsv.gz --out DIR

Files have the columns English, translation, attribution (manythings.org/anki); they may be plain,
.gz, or the .zip of that site. The French one is also in the PyPI sdist nmt==0.0.6.

    train.en-zh.en, .zh    aligned lines; `prefix = "<zh> "` in a recipe names the language to write
    valid.en-zh.en, .zh    the same
    test.en-zh.en, .zh     <zh> is in front already: `glassformer evaluate` reads no recipe
    test.en-zh.jsonl       a sentence and all its translations, normalised and as they were written
    …en-fr…                the same for French
    train.fr-zh.fr, .zh    with --pivot: translations of one English sentence
    ATTRIBUTION.tsv.gz     who wrote each pair (CC-BY 2.0 FR)
    CONTRIBUTORS.tsv       their names, and how many sentences are theirs
    summary.json           counts and hashes

Another direction needs no other files: a recipe's `columns = [2, 1]` and `prefix = "<en> "` read
the same ones backwards.

A sentence is for the test where int(md5(lower(English)), 16) % 60 is 0, for validation where it
is 1. Whatever is like one of these but for case and marks is in no other part, in either language.
"""

import argparse
import gzip
import hashlib
import io
import json
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outputs import Outputs
from sentences import chinese, english, french, likeness, plain, simplified

from glassformer.errors import DataError, GlassformerError

PARTS = ("train", "valid", "test")
LICENCE = "Tatoeba (tatoeba.org) through manythings.org/anki, CC-BY 2.0 FR"
EVERY = 60


@dataclass(frozen=True, slots=True)
class Pair:
    """An English sentence, a translation, and who wrote them."""

    part: str
    english: str
    translation: str
    as_written: str  # the translation before its marks were made alike
    attribution: str


@dataclass(frozen=True, slots=True)
class Target:
    """A language to translate to."""

    name: str
    clean: Callable[[str], str]
    keep: Callable[[str], str]  # as written, but for script and spaces


TARGETS = {"zh": Target("zh", chinese, simplified), "fr": Target("fr", french, plain)}


def part_of(text: str) -> str:
    """Which part an English sentence belongs to, by its hash alone.

    >>> [part_of(text) for text in ("Hi.", "I'm sick.", "He's a DJ.")]
    ['train', 'test', 'valid']
    """
    rest = int(hashlib.md5(text.lower().encode()).hexdigest(), 16) % EVERY
    return {0: "test", 1: "valid"}.get(rest, "train")


def rows(path: Path) -> Iterator[list[str]]:
    """The fields of each line of a table, however it is packed."""
    try:
        with _opened(path) as file, io.TextIOWrapper(file, "utf-8", newline="\n") as lines:
            for line in lines:
                yield line.rstrip("\r\n").split("\t")
    except (OSError, UnicodeDecodeError, zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"{path} must be a table of sentence pairs; {error}.") from None


def _opened(path: Path) -> Any:
    if path.suffix == ".gz":
        return gzip.open(path)
    if path.suffix != ".zip":
        return path.open("rb")
    with zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if n.endswith(".txt") and not n.startswith("_")]
        if len(names) != 1:
            raise DataError(f"{path} must hold one table in .txt; it holds {names}.")
        return io.BytesIO(archive.read(names[0]))


def read_pairs(path: Path, target: Target, left_out: Counter[str]) -> list[Pair]:
    """Every different pair of a file, in its order; what is left out is counted by its reason."""
    found: dict[tuple[str, str], list[Pair]] = {}
    for fields in rows(path):
        if len(fields) != 3:
            left_out["without three columns"] += 1
            continue
        source, translation, attribution = fields
        pair = Pair(
            part_of(source),
            english(source),
            target.clean(translation),
            target.keep(translation),
            attribution.strip(),
        )
        if not likeness(pair.english) or not likeness(pair.translation):
            left_out["empty"] += 1
            continue
        found.setdefault((pair.english, pair.translation), []).append(pair)
    pairs = []
    for same in found.values():
        left_out["the same but for marks or script"] += len(same) - 1
        parts = {pair.part for pair in same}
        # Two ways to write a sentence may fall into two parts: the one held out for longest wins.
        part = max(parts, key=PARTS.index)
        authors = " | ".join(dict.fromkeys(pair.attribution for pair in same))
        first = same[0]
        pairs.append(Pair(part, first.english, first.translation, first.as_written, authors))
    if not pairs:
        raise DataError(f"{path} must hold sentence pairs in three columns; it holds none.")
    return pairs


def without_leaks(
    pairs: list[Pair], held_out: dict[str, str], left_out: Counter[str]
) -> list[Pair]:
    """The pairs that are in the part to which everything like their English belongs."""
    kept = []
    for pair in pairs:
        if held_out.get(likeness(pair.english), pair.part) == pair.part:
            kept.append(pair)
        else:
            left_out["like a held-out sentence"] += 1
    return kept


def held_out_likenesses(languages: dict[str, list[Pair]]) -> dict[str, str]:
    """For what the test or the validation has, in any language: which of them it is."""
    held_out: dict[str, str] = {}
    for part in ("valid", "test"):
        for pairs in languages.values():
            held_out |= {likeness(pair.english): part for pair in pairs if pair.part == part}
    return held_out


def references(pairs: list[Pair]) -> dict[str, list[Pair]]:
    """The different English sentences, each with all its translations."""
    found: dict[str, list[Pair]] = {}
    for pair in pairs:
        found.setdefault(pair.english, []).append(pair)
    return found


def pivots(first: list[Pair], second: list[Pair]) -> list[tuple[str, str]]:
    """Translations of one English sentence into two languages, each pair once.

    >>> pair = Pair("train", "Hi.", "Salut.", "Salut.", "")
    >>> pivots([pair], [Pair("train", "Hi.", "你好。", "你好。", "")])
    [('Salut.', '你好。')]
    """
    others = references(second)
    return list(
        dict.fromkeys(
            (pair.translation, other.translation)
            for pair in first
            for other in others.get(pair.english, ())
        )
    )


def write_language(outputs: Outputs, name: str, pairs: list[Pair]) -> dict[str, Any]:
    """The files of one language, and what there is to tell about them."""
    told: dict[str, Any] = {}
    for part in PARTS:
        some = [pair for pair in pairs if pair.part == part]
        piece = f"<{name}> " if part == "test" else ""
        outputs.lines(f"{part}.en-{name}.en", (piece + pair.english for pair in some))
        outputs.lines(f"{part}.en-{name}.{name}", (pair.translation for pair in some))
        told[part] = {"pairs": len(some), "sentences": len(references(some))}
    test = references([pair for pair in pairs if pair.part == "test"])
    outputs.lines(f"test.en-{name}.jsonl", map(_as_json, test.values()))
    seen = {pair.translation for pair in pairs if pair.part == "train"}
    of_test = [pair.translation for same in test.values() for pair in same]
    told["test"]["references that also translate a training sentence"] = sum(
        text in seen for text in of_test
    )
    return told


def _as_json(same: list[Pair]) -> str:
    line = {
        "source": same[0].english,
        "references": [pair.translation for pair in same],
        "as_written": [pair.as_written for pair in same],
    }
    return json.dumps(line, ensure_ascii=False)


def prepare(files: dict[str, Path], folder: Path, *, pivot: bool = False) -> dict[str, Any]:
    """Read, split and write everything; the summary is returned, too."""
    left_out: dict[str, Counter[str]] = {name: Counter() for name in files}
    languages = {n: read_pairs(path, TARGETS[n], left_out[n]) for n, path in files.items()}
    held_out = held_out_likenesses(languages)
    languages = {n: without_leaks(pairs, held_out, left_out[n]) for n, pairs in languages.items()}
    outputs = Outputs(folder)
    told: dict[str, Any] = {"licence": LICENCE, "languages": {}}
    for name, pairs in languages.items():
        counts = write_language(outputs, name, pairs)
        told["languages"][name] = {**counts, "left out": dict(left_out[name])}
    if pivot and {"fr", "zh"} <= set(languages):
        train = {n: [p for p in pairs if p.part == "train"] for n, pairs in languages.items()}
        crossed = pivots(train["fr"], train["zh"])
        outputs.lines("train.fr-zh.fr", (first for first, _ in crossed))
        outputs.lines("train.fr-zh.zh", (second for _, second in crossed))
        told["pivot"] = {"train": {"pairs": len(crossed)}}
    outputs.lines("ATTRIBUTION.tsv.gz", _attributions(languages))
    outputs.lines("CONTRIBUTORS.tsv", _contributors(languages))
    outputs.finish(told, files.values())
    return told


def _attributions(languages: dict[str, list[Pair]]) -> Iterator[str]:
    yield f"# {LICENCE}; sentences were normalised, Chinese was brought to simplified characters"
    yield "part\tlanguage\tEnglish\ttranslation\tattribution"
    for name, pairs in languages.items():
        for pair in pairs:
            yield "\t".join((pair.part, name, pair.english, pair.translation, pair.attribution))


def _contributors(languages: dict[str, list[Pair]]) -> Iterator[str]:
    authors = {
        sentence: name
        for pairs in languages.values()
        for pair in pairs
        for sentence, name in re.findall(r"#(\d+) \(([^()]+)\)", pair.attribution)
    }
    yield f"# {LICENCE}"
    for name, n in sorted(Counter(authors.values()).items(), key=lambda item: (-item[1], item[0])):
        yield f"{name}\t{n}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--chinese", type=Path, metavar="FILE")
    parser.add_argument("--french", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True)
    parser.add_argument("--pivot", action="store_true", help="also French–Chinese, through English")
    args = parser.parse_args(arguments)
    files = {n: p for n, p in (("zh", args.chinese), ("fr", args.french)) if p is not None}
    if not files:
        parser.error("give --chinese FILE, --french FILE, or both")
    if args.pivot and len(files) < 2:
        parser.error("--pivot must have both --chinese and --french")
    try:
        told = prepare(files, args.out, pivot=args.pivot)
    except GlassformerError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
