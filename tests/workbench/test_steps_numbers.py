"""The numbers that web/tests reads are those of the library."""

import json
from typing import Any

import pytest

from workbench.steps_numbers import FILE, numbers


def compare(found: Any, kept: Any, place: str = "") -> None:
    if isinstance(kept, dict):
        assert found.keys() == kept.keys(), place
        for name in kept:
            compare(found[name], kept[name], f"{place}.{name}")
    elif isinstance(kept, list):
        assert len(found) == len(kept), place
        for n, (a, b) in enumerate(zip(found, kept, strict=True)):
            compare(a, b, f"{place}.{n}")
    elif isinstance(kept, float):
        assert found == pytest.approx(kept, rel=1e-9, abs=1e-12), place
    elif not place.rpartition(".")[2].startswith("float") and ".source." not in place:
        assert found == kept, place  # base64 has the last bits, lines move: neither is compared


def test_the_file_is_what_the_library_gives() -> None:
    compare(json.loads(json.dumps(numbers())), json.loads(FILE.read_text()))
