"""Flow and why: the norms of the stream, the lens along it, and what wrote a token."""

from typing import Any

from glassformer.models.checkpoints import Model
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.flow import find_likeliest, find_stream
from glassformer.workbench.rooms.lines.reading import Program, begin_program
from glassformer.workbench.wire.lines import FlowLinesRequest


def write_flow(asked: FlowLinesRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """A program that prints the stream of a token, what it says on its way, and why."""
    reading = memory.reading(asked, progress)
    stream, row = find_stream(reading, asked)
    program = begin_program(asked, memory, progress, residual=True)
    program.lines += [
        f"stream = trace.residual({stream.name!r})",
        f"norms = {{name: float(state[0, {row}].norm()) for name, state in stream.states()}}",
        f"added = {{part.name: float(part.value[0, {row}].norm()) for part in stream.parts}}",
        "print(norms, added, sep='\\n')",
    ]
    readout = stream.readout
    if readout is not None and readout.operations:
        place = f"position={row}, stack={stream.name!r}"
        program.lines += [
            "# what the stream would say at every border",
            f"lens = gf.logit_lens(trace, stack={stream.name!r}, top=5, positions=[{row}])",
            "for n, border in enumerate(lens.borders):",
            "    print(border, lens.labels[n][0], lens.probabilities[n, 0].tolist())",
        ]
        if asked.view == "why":
            _add_reasons(program, asked, reading.source, place)
        else:
            token = find_likeliest(stream, row) if asked.token is None else asked.token
            program.lines += [
                f"# what each {asked.view} adds to the logit of the token",
                f"found = gf.attribute(trace, {token!r}, against={asked.against!r}, "
                f"by={asked.view!r}, {place})",
                "print(found.logit, found.remainder)",
                "for share in found.top(len(found.shares)):",
                "    print(share.name, share.value)",
            ]
    return {"lines": str(program)}


def _add_reasons(program: Program, asked: FlowLinesRequest, source: object, place: str) -> None:
    size = f"top={asked.top}, depth={asked.depth}, branches={asked.branches}"
    judged = "judged=False"
    program.lines.append("# the chain of reasons, and what the model does without them")
    if isinstance(source, Model):
        program.imports.add("from glassformer.analysis.neutral_text import record_reference")
        text = "" if not asked.reference else f", {asked.reference!r}"
        judged = f"reference=record_reference(model{text})"
    program.lines += [
        f"found = gf.why(trace, {asked.token!r}, against={asked.against!r}, {place}, {size}, "
        f"{judged})",
        "print(found)",
    ]
