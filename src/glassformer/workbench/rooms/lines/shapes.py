"""Shapes: every step of an architecture with its shapes and costs."""

from typing import Any

from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.lines.reading import Program, find_source
from glassformer.workbench.rooms.shapes import choose_config
from glassformer.workbench.wire.shapes import ShapesRequest


def write_shapes(asked: ShapesRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """A program that prints the shape of each result, and what it costs."""
    config, changes = choose_config(asked, memory)
    config.replace(**changes)  # raises where sizes do not fit together
    progress(0.5)
    program = Program(
        {
            "from glassformer.models.shape_costs import Cost, measure_costs",
            "from glassformer.models.shapes import shapes",
        },
        [],
    )
    if asked.preset is not None:
        program.imports.add("from glassformer.models import PRESETS")
        program.lines.append(f"config = PRESETS[{asked.preset!r}]")
    else:
        program.imports.add("import glassformer as gf")
        program.lines.append(f"config = gf.load({find_source(asked, memory)!r}).config")
    if changes:
        given = ", ".join(f"{name}={value!r}" for name, value in changes.items())
        program.lines.append(f"config = config.replace({given})")
    context = asked.context if config.family == "encoder_decoder" else None
    sizes = {"batch": asked.batch, "length": asked.length, "context": context}
    given = "".join(f", {name}={size}" for name, size in sizes.items() if size is not None)
    program.lines += [
        f"trace = shapes(config{given})",
        "costs = measure_costs(trace)",
        "for step, cost in zip(trace.steps, costs):",
        "    print(step.site, step.operation, [each.numbers for each in step.outputs], cost)",
        "total = sum(costs, Cost())",
        "print(total)",
    ]
    return {"lines": str(program)}
