"""Touch: both runs, the weights of the chosen row, and the predictions in both."""

from typing import Any

from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.lines.reading import (
    find_source,
    load_source,
    name_inputs,
    record,
    write_changes,
)
from glassformer.workbench.rooms.touch import compare_runs
from glassformer.workbench.wire.touch import ChangeRequest

_EFFECT = "from glassformer.analysis.effects import measure_effect"


def write_touch(asked: ChangeRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """A program that runs the model without the interventions and with them."""
    shown = compare_runs(asked, memory, progress)
    reading = memory.unchanged(asked, progress)
    program = load_source(reading, memory)
    if reading.source is None:
        program.lines.append(f"before = after = gf.Trace.load({find_source(asked, memory)!r})")
    else:
        program.lines += name_inputs(reading, "tokens")
        program.lines += record(reading, "before", residual=True, is_changed=False)
        if asked.change is None:
            program.lines.append("after = before")
        else:
            changes = write_changes(program, asked, memory, progress, this="before")
            program.lines.append(f"changes = {changes}")
            program.lines += record(reading, "after", residual=True, is_changed=True)
    if shown["head"] is not None:
        row = f"rows=[{shown['query']}])[0]"
        program.lines += [
            "# the chosen row of the head, in both runs",
            f"weights = [run[{asked.site!r}].weights(head={asked.head}, {row} "
            "for run in (before, after)]",
            "print(*zip(*(row.tolist() for row in weights)), sep='\\n')",
        ]
    if shown["positions"]:
        program.imports.add(_EFFECT)
        program.lines += [
            "# what the model predicts, in both runs",
            f"effect = measure_effect(before, after, position={shown['position']}, top=10)",
            "for token, p_before, p_after in effect.tokens:",
            '    print(f"{token:12} {p_before:.6f} {p_after:.6f}")',
            "print(effect.divergence.tolist())  # KL at each position, in nats",
        ]
    return {"lines": str(program)}
