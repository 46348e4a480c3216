"""Which characters a translator was trained to read, and which tokens to write in each language.

    python recipes/data/translator_coverage.py recipes/translator.toml --data DIR --model FOLDER

reads the pairs of a recipe whose prefixes name the target languages (`prefix = "<zh> "`), and adds
coverage.json to the model's folder, with its hash in config.json; the weights are not touched.

    own         tokens in words of the language's own script, or in no word
    borrowed    tokens that occur only in words of another script: Tom in a Chinese sentence
    has_spaces  whether most sentences of more than one word have a space

A script is a language's own if it has at least 5 % of the letters.
"""

import argparse
import re
import sys
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sentences import plain_marks

from glassformer.errors import ConfigError, GlassformerError
from glassformer.models.checkpoints import load
from glassformer.models.checkpoints.own import add_file
from glassformer.text import read_pairs
from glassformer.text.coverage import FILE, Coverage, TargetCoverage

LEAST_SHARE = 0.05  # more than names have, less than a second script such as kana
_PREFIX = re.compile(r"<([a-z]{2})> ")


def script_of(character: str) -> str | None:
    """The script of a letter, by the first word of its name; None for anything else.

    >>> [script_of(c) for c in "aé猫я7。"]
    ['LATIN', 'LATIN', 'CJK', 'CYRILLIC', None, None]
    """
    if not character.isalpha():
        return None
    return unicodedata.name(character, "UNKNOWN").split(" ")[0]


def own_scripts(lines: Sequence[str]) -> set[str]:
    """The scripts of at least 5 % of the letters.

    >>> own_scripts(["Tom和他的朋友在公园里散步，", "然后一起回家吃饭，晚上看了一部电影，" * 3])
    {'CJK'}
    """
    counts = Counter(script for line in lines for c in line if (script := script_of(c)))
    return {script for script, n in counts.items() if n >= LEAST_SHARE * counts.total()}


def cover_target(backend: Any, lines: Sequence[str]) -> TargetCoverage:
    """The tokens of the translations into one language.

    A token of a byte-level vocabulary may be a part of a character: it counts as the character.
    """
    scripts, own, seen = own_scripts(lines), set[int](), set[int]()
    for line, encoding in zip(lines, backend.encode_batch(list(lines)), strict=True):
        for token, (start, stop) in zip(encoding.ids, encoding.offsets, strict=True):
            seen.add(token)
            if {script_of(c) for c in line[start:stop]} <= {*scripts, None}:
                own.add(token)
    return TargetCoverage(
        own=tuple(sorted(own)),
        borrowed=tuple(sorted(seen - own)),
        has_spaces=2 * sum(" " in line for line in lines) > len(lines),
    )


def read_targets(
    recipe: dict[str, Any], folder: Path, tokenizer: Any
) -> dict[str, list[tuple[str, str]]]:
    """The training pairs of a recipe for each target language, without prefixes."""
    targets = dict[str, list[tuple[str, str]]]()
    for entry in recipe.get("data", {}).get("train", []):
        prefix = _PREFIX.fullmatch(entry.get("prefix", ""))
        if prefix is None or prefix[1] not in tokenizer.languages:
            known = ", ".join(f"'<{code}> '" for code in tokenizer.languages)
            raise ConfigError(
                "Each entry of data.train must have a prefix with a language of the model, one of "
                f"{known}; got {entry.get('prefix')!r}."
            )
        pairs, _ = read_pairs(*(folder / name for name in entry["files"]))
        targets.setdefault(prefix[1], []).extend(pairs)
    return dict(sorted(targets.items()))


def cover(recipe: dict[str, Any], folder: Path, tokenizer: Any) -> Coverage:
    """What the training pairs of a recipe cover."""
    targets = read_targets(recipe, folder, tokenizer)
    return Coverage(
        characters=frozenset(c for pairs in targets.values() for text, _ in pairs for c in text),
        plain=plain_marks(),
        targets={
            code: cover_target(tokenizer.backend, [text for _, text in pairs])
            for code, pairs in targets.items()
        },
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--data", type=Path, metavar="DIR", required=True)
    parser.add_argument("--model", type=Path, metavar="FOLDER", required=True)
    args = parser.parse_args(arguments)
    try:
        recipe = tomllib.loads(args.recipe.read_text(encoding="utf-8"))
        found = cover(recipe, args.data, load(args.model).tokenizer)
        add_file(args.model, FILE, found.as_bytes())
    except GlassformerError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for code, target in found.targets.items():
        sys.stdout.write(f"{code}: {len(target.own)} own, {len(target.borrowed)} borrowed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
