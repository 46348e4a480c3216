"""What a translator's training texts covered: characters that it reads, tokens that it writes.

    coverage.json    {"characters": " !'abc…", "plain": {"’": "'"},
                      "targets": {"zh": {"own": […], "borrowed": […], "has_spaces": false}}}

It lies beside tokenizer.json; recipes/data/translator_coverage.py makes it from training pairs.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError, ConfigError
from glassformer.parsing import read_json
from glassformer.settings import as_plain, quote, read_settings

FILE = "coverage.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetCoverage:
    """The tokens of a target language in training.

    ::

        own         in words of the language's own script, or in no word
        borrowed    only in words of another script, such as names
        has_spaces  whether words are separated by spaces
    """

    own: tuple[int, ...]
    borrowed: tuple[int, ...] = ()
    has_spaces: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """The characters of all sources, how others are written in them, and each target language."""

    characters: frozenset[str]
    plain: Mapping[str, str]
    targets: Mapping[str, TargetCoverage]

    def as_bytes(self) -> bytes:
        """The content of `coverage.json`."""
        plain = {
            "characters": "".join(sorted(self.characters)),
            "plain": dict(self.plain),
            "targets": {code: as_plain(target) for code, target in self.targets.items()},
        }
        return (json.dumps(plain) + "\n").encode()


def read_coverage(folder: Path, vocab_size: int) -> Coverage | None:
    """The coverage in a model's folder; None if it has none."""
    path = folder / FILE
    if not path.is_file():
        return None
    plain = read_json(path)
    characters, written = plain.get("characters"), plain.get("plain")
    if not isinstance(characters, str) or not isinstance(written, dict) or not _has_texts(written):
        raise CheckpointError(
            f"{path} must have the characters of all sources as a string, and a table of those "
            f"that are written otherwise; it has {quote(characters)} and {quote(written)}."
        )
    targets = plain.get("targets")
    if not isinstance(targets, dict):
        raise CheckpointError(
            f"{path} must have a table of target languages; it has {quote(targets)}."
        )
    return Coverage(
        characters=frozenset(characters),
        plain=written,
        targets={
            code: _read_target(path, code, each, vocab_size) for code, each in targets.items()
        },
    )


def _read_target(path: Path, code: str, plain: Any, vocab_size: int) -> TargetCoverage:
    try:
        target = read_settings(TargetCoverage, plain, f"The language {code} in {path}")
    except ConfigError as error:
        raise CheckpointError(str(error)) from None
    wrong = [token for token in (*target.own, *target.borrowed) if not 0 <= token < vocab_size]
    if wrong:
        raise CheckpointError(
            f"Tokens in {path} must be ids from 0 to {vocab_size - 1}; {code} has {wrong[0]}."
        )
    return target


def _has_texts(table: dict[str, Any]) -> bool:
    return all(isinstance(each, str) for each in table.values())
