"""Steps: one row of one head from its dot products to its output, its block, and the way back."""

from typing import Any

from glassformer.analysis.block_rows import check_row
from glassformer.models.stack import Stack
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.lines.reading import begin_program
from glassformer.workbench.wire.lines import StepsLinesRequest

_FORWARD = [
    "for name in ('dots', 'scaled', 'scores', 'exps', 'weights', 'out'):",
    "    print(name, getattr(row, name).tolist())",
]
_BLOCK = [
    "# the block around it: the stream, what the head projects, what attention adds, the stream",
    "for name in ('x', 'projected', 'added', 'end'):",
    "    print(name, getattr(block, name).tolist())",
]
_BACK = [
    "d_values = torch.outer(row.weights, gradient)",
    "d_weights = row.v.double() @ gradient",
    "d_scores = row.weights * (d_weights - row.weights @ d_weights)  # J = diag(w) − w wᵀ",
    "slope = 1 if row.softcap is None else 1 - torch.tanh(row.scaled / row.softcap) ** 2",
    "d_dots = d_scores * slope * row.scale",
    "d_q = d_dots @ row.k.double()",
    "d_keys = torch.outer(d_dots, row.q.double())",
    "print(d_weights, d_scores, d_dots, d_q, sep='\\n')",
]


def write_steps(asked: StepsLinesRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """A program that prints the numbers of the row, forward or back."""
    reading = memory.reading(asked, progress)
    site = reading.trace[asked.site]
    check_row(site, asked.head, asked.query)
    has_block = isinstance(getattr(reading.source, asked.site.split(".")[0], None), Stack)
    program = begin_program(asked, memory, progress, residual=True, outputs=has_block)
    program.lines += [
        f"site = trace[{site.name!r}]",
        f"row = site.row({asked.head}, {asked.query})",
    ]
    if asked.way == "back":
        program.imports.add("import torch")
        gradient = dict(asked.gradient) or {0: 1.0}
        program.lines.append(f"gradient = torch.zeros({site.v.shape[-1]}, dtype=torch.float64)")
        program.lines += [f"gradient[{place}] = {value}" for place, value in gradient.items()]
        program.lines += _BACK
    else:
        program.lines += _FORWARD
        if has_block:
            program.imports.add("from glassformer.analysis.block_rows import read_block_row")
            place = f"head={asked.head}, query={asked.query}"
            program.lines.append(f"block = read_block_row(model, trace, {site.name!r}, {place})")
            program.lines += _BLOCK
    return {"lines": str(program)}
