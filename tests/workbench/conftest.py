"""The workbench is an extra: without its packages its tests are not collected."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from workbench.served import Server

collect_ignore_glob = [] if find_spec("fastapi") and find_spec("uvicorn") else ["*"]


@pytest.fixture(scope="session")
def server() -> "Iterator[Server]":
    """The workbench as it starts with nothing named, once for all files that only look at it."""
    from workbench.served import serving

    with serving("glassformer.workbench.desk", size=1) as found:
        yield found
