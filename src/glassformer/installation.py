"""How glassformer was installed, and the command that adds an extra to that installation."""

import json
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname


def install_command(extra: str) -> str:
    """The pip command for an extra: from the clone for an editable install, else by name.

    >>> "[figures]" in install_command("figures")
    True
    """
    clone = editable_clone()
    if clone is None:
        return f"pip install 'glassformer[{extra}]'"
    where = "." if clone == Path.cwd() else clone
    return f"pip install -e '{where}[{extra}]'"


@cache
def editable_clone() -> Path | None:
    """The folder of an editable installation (PEP 610, direct_url.json); None for a wheel."""
    try:
        recorded = distribution("glassformer").read_text("direct_url.json")
    except PackageNotFoundError:  # not installed: src/ of a clone is on the path
        return Path(__file__).parents[2]
    origin = json.loads(recorded or "{}")
    if not origin.get("dir_info", {}).get("editable", False):
        return None
    return Path(url2pathname(urlsplit(origin["url"]).path))
