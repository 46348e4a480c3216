"""Untrusted JSON and TOML: parsed within limits, or rejected with a one-sentence error.

Rejected are files larger than their kind ever is, deep nesting, duplicate keys, and lone
surrogates, which cannot be encoded as UTF-8.
"""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError, ConfigError, GlassformerError

MOST_BYTES = 16 << 20  # for settings; vocabularies may be larger
MOST_DEPTH = 64
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_text(
    path: Path, error: type[GlassformerError] = CheckpointError, *, most: int = MOST_BYTES
) -> str:
    """Read a small UTF-8 file; anything else raises `error` with its path."""
    try:
        if not path.is_file():  # a pipe would block, and a device may never end
            raise error(f"{path} cannot be read: {_explain_absence(path)}.")
        with path.open("rb") as file:
            raw = file.read(most + 1)
    except OSError as wrong:
        raise error(f"{path} cannot be read: {wrong.strerror or wrong}.") from None
    if len(raw) > most:
        raise error(f"{path} must have at most {most:,} bytes; it is larger.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise error(f"{path} must be UTF-8 text; byte {wrong.start} is not.") from None


def read_json(
    path: Path, error: type[GlassformerError] = CheckpointError, *, most: int = MOST_BYTES
) -> dict[str, Any]:
    """Read a file that holds a JSON object."""
    plain = parse_json(read_text(path, error, most=most), str(path), error)
    if not isinstance(plain, dict):
        raise error(f"{path} must hold a JSON object; it holds {_name_kind(plain)}.")
    return plain


def parse_json(text: str, where: str, error: type[GlassformerError] = CheckpointError) -> Any:
    """Parse a JSON text; `where` names it in error messages."""

    def load() -> Any:
        plain = json.loads(text, object_pairs_hook=_reject_duplicate_keys)
        if _SURROGATE.search(text):
            json.dumps(plain, ensure_ascii=False).encode()
        return plain

    return _parse(load, f"{where} is not readable JSON", error)


def read_toml(path: Path, error: type[GlassformerError] = ConfigError) -> dict[str, Any]:
    """Read the tables of a TOML file."""
    text = read_text(path, error, most=1 << 20)
    return _parse(lambda: tomllib.loads(text), f"{path} is not TOML", error)


def _parse(load: Callable[[], Any], problem: str, error: type[GlassformerError]) -> Any:
    try:
        plain = load()
    except RecursionError:
        raise error(f"{problem}: it is nested too deeply.") from None
    except UnicodeEncodeError:
        raise error(f"{problem}: it has a lone surrogate.") from None
    except (ValueError, OverflowError) as wrong:  # also numbers of 5,000 digits
        raise error(f"{problem}: {str(wrong).split(';')[0].rstrip('.')}.") from None
    if _is_deep(plain):
        raise error(f"{problem}: it is nested more than {MOST_DEPTH} levels deep.")
    return plain


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise ValueError(f"it has the key {twice[:50]!r} twice")
    return found


def _is_deep(plain: Any) -> bool:
    level = [plain] if isinstance(plain, dict | list) else []
    for _ in range(MOST_DEPTH):
        inside = (each.values() if isinstance(each, dict) else each for each in level)
        level = [value for values in inside for value in values if isinstance(value, dict | list)]
        if not level:
            return False
    return True


def _explain_absence(path: Path) -> str:
    return "it is not a regular file" if path.exists() else "No such file or directory"


def _name_kind(plain: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(plain), "a number")
