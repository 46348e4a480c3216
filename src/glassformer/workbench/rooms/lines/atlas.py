"""Atlas: the cells of a part of a head, or the blocks into which they are pooled."""

from typing import Any

from glassformer.errors import TraceError
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.lines.reading import begin_program
from glassformer.workbench.rooms.look import select_site
from glassformer.workbench.wire.lines import RegionRequest


def write_region(asked: RegionRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """A program that prints the numbers of the part of the map that is in sight."""
    site = select_site(memory.glance(asked, progress).trace, asked.site)
    if asked.head not in site.head_numbers:
        known = ", ".join(map(str, site.head_numbers))
        raise TraceError(f"{site.name} has heads {known}; got head={asked.head}.")
    program = begin_program(asked, memory, progress, residual=False)
    rows, cols = (f"slice({start}, {stop})" for start, stop in (asked.rows, asked.cols))
    sequence = f", sequence={asked.sequence}" if asked.sequence else ""
    program.lines.append(f"site = trace[{site.name!r}]")
    if asked.level == 0:
        found = f"site.weights(head={asked.head}, rows={rows}, cols={cols}{sequence})"
    else:
        program.imports.add("from glassformer.analysis.pyramid import Pyramid")
        program.lines += [
            f"pyramid = Pyramid(site, {asked.head}{sequence})",
            f"# blocks of {1 << asked.level} × {1 << asked.level} cells; −1 where nothing may be "
            "attended to",
        ]
        found = (
            f"pyramid.lines({asked.level}, {rows}, {cols}, {asked.pool!r}, "
            f"has_first={asked.has_first}).values"
        )
    program.lines += [f"values = {found}", "print(values)"]
    return {"lines": str(program)}
