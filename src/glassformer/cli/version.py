"""`glassformer --version`: with --json, everything that a bug report needs."""

import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

import glassformer
from glassformer.installation import editable_clone

_NOT_FOR_USERS = {"dev", "docs"}


def describe_installation() -> dict[str, Any]:
    """Versions of glassformer, Python, torch and every optional package; the system; the device.

    >>> sorted(describe_installation())
    ['device', 'editable', 'extras', 'glassformer', 'python', 'system', 'torch']
    """
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return {
        "glassformer": glassformer.__version__,
        "editable": editable_clone() is not None,
        "python": platform.python_version(),
        "system": platform.platform(),
        "torch": torch.__version__,
        "device": device,
        "extras": {
            extra: {package: _installed_version(package) for package in packages}
            for extra, packages in _extras().items()
        },
    }


def _extras() -> dict[str, list[str]]:
    """The packages of each extra, from the metadata of the installation."""
    found: dict[str, list[str]] = {}
    try:
        listed = requires("glassformer") or []
    except PackageNotFoundError:  # on the path, not installed
        listed = []
    for requirement in listed:
        parts = re.fullmatch(r"([\w.-]+).*extra == ['\"]([\w-]+)['\"].*", requirement)
        if parts and parts[1] != "glassformer" and parts[2] not in _NOT_FOR_USERS:
            found.setdefault(parts[2], []).append(parts[1])
    return found


def _installed_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
