"""One head: the weight of a cell, and its arithmetic."""

from glassformer.tracing import Site
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.lines.reading import begin_program
from glassformer.workbench.wire.exports import ExportRequest


def write_head(site: Site, asked: ExportRequest, memory: Memory, progress: Progress) -> str:
    """A program that prints the weight of the cell and its arithmetic."""
    weight = float(site.weights(head=asked.head, rows=[asked.query])[0, asked.key])
    row = f"site.weights(head={asked.head}, rows=[{asked.query}])[0, {asked.key}]"
    cell = f"head={asked.head}, query={asked.query}, key={asked.key}"
    program = begin_program(asked, memory, progress, residual=False)
    program.lines += [
        f"site = trace[{site.name!r}]",
        f"weight = float({row})",
        f"print(weight)  # {weight:.6f}",
        f"print(site.arithmetic({cell}))",
    ]
    return str(program)
