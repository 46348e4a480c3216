"""Results as JSON: readable, valid for any number, and safe to print in a terminal."""

import json
import math
import re
from typing import Any


def to_json(value: Any) -> str:
    """JSON in which −∞ and NaN, which JSON lacks, are null, and control characters are escaped.

    >>> to_json({"scores": [1.5, float("-inf")], "token": "我"})
    '{"scores": [1.5, null], "token": "我"}'
    """
    plain = json.dumps(finite_or_null(value), ensure_ascii=False)
    return re.sub(r"[^ -~]", lambda match: _escape(match[0]), plain)


def finite_or_null(value: Any) -> Any:
    """The same nested value with None for every number that is not finite."""
    if isinstance(value, dict):
        return {name: finite_or_null(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_null(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _escape(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]
