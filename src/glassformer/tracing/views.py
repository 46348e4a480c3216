"""How a trace finds those who draw it: they lie above this folder, so the package says where."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable


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


_sources: list[Callable[[], Views]] = []


def draw_with(source: Callable[[], Views]) -> None:
    """From now on traces are drawn by what `source` gives; it is asked when something is drawn."""
    _sources[:] = [source]


def views() -> Views:
    """What draws."""
    return _sources[0]()
