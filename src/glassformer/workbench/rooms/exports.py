"""A view as a file: figures, the offline page, the trace, a table of weights, or Python lines."""

import base64
import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.render.figure.drawing import draw_figure
from glassformer.render.page.document import page_html
from glassformer.render.tokens import token_names
from glassformer.tracing import Site, Trace
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.lines.head import write_head
from glassformer.workbench.rooms.look import select_site
from glassformer.workbench.wire.exports import ExportRequest

_KINDS = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "html": "text/html",
    "trace": "application/octet-stream",
    "csv": "text/csv",
    "python": "text/x-python",
}
_MOST_BYTES = 64 << 20
_MOST_CELLS = 1 << 20  # of a table


def export_view(asked: ExportRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """The file that was asked for."""
    # A trace is kept with all that rooms may ask of it; the others show attention alone.
    read = memory.reading if asked.format == "trace" else memory.glance
    reading = read(asked, progress)
    site = select_site(reading.trace, asked.site)
    _check_place(site, asked)
    write: dict[str, Callable[[], bytes]] = {
        "html": lambda: page_html(reading.trace, Language(asked.lang)).encode(),
        "trace": lambda: _save_trace(reading.trace),
        "csv": lambda: _write_table(reading.trace, site, asked.head),
        "python": lambda: write_head(site, asked, memory, progress).encode(),
    }
    content = write.get(asked.format, lambda: _draw(reading.trace, site, asked))()
    if len(content) > _MOST_BYTES:
        raise TraceError(_say_too_large(len(content)))
    ending = "py" if asked.format == "python" else asked.format
    return {
        "name": re.sub(r"[^\w.-]+", "-", f"{site.name}-{asked.head}")[:80] + f".{ending}",
        "kind": _KINDS[asked.format],
        "content": base64.b64encode(content).decode("ascii"),
    }


def _check_place(site: Site, asked: ExportRequest) -> None:
    _, _, L, S = site.shape
    site.entropy(head=asked.head)  # names the heads that there are
    if asked.query >= L or asked.key >= S:
        raise TraceError(
            f"{site.name} has queries 0 … {L - 1} and keys 0 … {S - 1}; got query={asked.query}, "
            f"key={asked.key}."
        )


def _draw(trace: Trace, site: Site, asked: ExportRequest) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, f"figure.{asked.format}")
        draw_figure(trace, path, site=site.name, head=asked.head, language=Language(asked.lang))
        return path.read_bytes()


def _save_trace(trace: Trace) -> bytes:
    operands = [t for site in trace for t in (site.q, site.k, site.v, site.out) if t is not None]
    size = sum(t.numel() * t.element_size() for t in operands)
    if size > _MOST_BYTES:
        raise TraceError(_say_too_large(size))
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.trace")
        trace.save(path)
        return path.read_bytes()


def _say_too_large(size: int) -> str:
    return (
        f"A file from here has at most {_MOST_BYTES >> 20} MiB; this one has {size >> 20} MiB. "
        "Make it with the Python lines, or look at a shorter text."
    )


def _write_table(trace: Trace, site: Site, head: int) -> bytes:
    """The weights of a head: a row for each query, a column for each key."""
    _, _, L, S = site.shape
    if L * S > _MOST_CELLS:
        raise TraceError(
            f"A table has at most {_MOST_CELLS:,} weights; this head has {L * S:,}. "
            "Choose rows in Python: site.weights(head=…, rows=…)."
        )
    queries, keys = token_names(trace, site)
    text = io.StringIO()
    table = csv.writer(text)
    # A token alone could be taken for a formula by a spreadsheet; after its position it is text.
    table.writerow(["query", *(f"{i} {name}" for i, name in enumerate(keys))])
    for i, (name, row) in enumerate(zip(queries, site.weights(head=head).tolist(), strict=True)):
        table.writerow([f"{i} {name}", *map(repr, row)])
    return text.getvalue().encode("utf-8-sig")  # the mark tells spreadsheets that it is UTF-8
