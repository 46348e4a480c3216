"""The places of a sweep: what is patched, and in which row and column its effect is shown."""

from collections.abc import Hashable
from typing import Any, Literal, NamedTuple

from glassformer.analysis.lens import name_positions
from glassformer.analysis.writers import Writer
from glassformer.errors import TraceError
from glassformer.tracing import Patch, Trace
from glassformer.tracing.stream import Stream

Over = Literal[
    "heads", "heads × positions", "parts", "parts × positions", "borders × positions", "edges"
]


class Edge(NamedTuple):
    """The direct way from a sender to what a later part reads, or to the logits."""

    sender: Writer
    receiver: str


class Cell(NamedTuple):
    """One change, and where its effect is shown."""

    change: Patch | Edge
    row: int
    column: int

    @property
    def group(self) -> Hashable:
        """Those of one group run side by side: of one layer, or to one receiver."""
        return self.change.receiver if isinstance(self.change, Edge) else self.change.layer


class Places(NamedTuple):
    """The rows and columns of a sweep, and its cells, group by group."""

    rows: list[str]
    columns: list[str]
    cells: list[Cell]


def list_places(clean: Trace, stack: str | None, over: Over) -> Places:
    """Every place whose value is taken from the clean run."""
    stream = clean.residual(stack)
    kind, _, by = over.partition(" × ")
    rows: list[tuple[str, dict[str, Any]]]  # their names, and what is patched there
    if kind == "heads":
        rows = _list_heads(clean, stream)
    elif kind == "parts":
        rows = [(part.name, {"place": part.name}) for part in stream.parts]
    else:
        rows = [(name, {"place": name, "what": "state"}) for name in stream.states_of_model()]
    if by:
        positions = name_positions(clean, stream, 0)
        cells = [
            Cell(Patch(trace=clean, positions=[j], **what), i, j)
            for i, (_, what) in enumerate(rows)
            for j in range(len(positions))
        ]
        columns = [f"{j} {label}" for j, label in enumerate(positions)]
        return Places([name for name, _ in rows], columns, cells)
    if kind == "heads":
        sites = list(dict.fromkeys(what["place"] for _, what in rows))
        n = max(what["head"] for _, what in rows) + 1
        cells = [
            Cell(Patch(trace=clean, **what), sites.index(what["place"]), what["head"])
            for _, what in rows
        ]
        return Places(sites, [str(h) for h in range(n)], cells)
    cells = [Cell(Patch(trace=clean, **what), i, 0) for i, (_, what) in enumerate(rows)]
    return Places([name for name, _ in rows], ["all"], cells)


def _list_heads(clean: Trace, stream: Stream) -> list[tuple[str, dict[str, Any]]]:
    sites = [clean[part.site] for part in stream.parts if part.site in clean.run.sites]
    if not sites:
        raise TraceError(f"No attention of {stream.name} was recorded whose heads are known.")
    return [
        (f"{site.name}.{h}", {"place": site.name, "head": h})
        for site in sites
        for h in range(site.n_heads)
    ]
