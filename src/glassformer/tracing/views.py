"""How a trace finds what draws it, which lives in a folder above this one."""

from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, cast, runtime_checkable


@runtime_checkable
class Views(Protocol):
    """What can be made of a trace for people to see; the first argument is the trace."""

    def show(
        self,
        trace: Any,
        *,
        site: str | None,
        head: int | None,
        sequence: int,
        pool: Literal["max", "mean"],
        scale: Literal["quantile", "row"],
        first_key: bool,
    ) -> None: ...

    def figure(
        self,
        trace: Any,
        path: str | Path,
        *,
        kind: str,
        site: str | None,
        head: int | None,
        sequence: int,
        pool: Literal["max", "mean"],
        scale: Literal["quantile", "row"],
        first_key: bool,
    ) -> None: ...

    def page(self, trace: Any, path: str | Path) -> None: ...

    def inline(self, trace: Any) -> str: ...


def views() -> Views:
    """The module that draws, imported when something is drawn: drawing needs more than torch."""
    return cast(Views, import_module("glassformer.render.views"))
