"""The flow of the residual stream: how much each part adds at each position."""

import torch
from torch import Tensor

from glassformer.analysis.lens import name_positions
from glassformer.languages import Language
from glassformer.render.chart import Cells, Chart, Number
from glassformer.render.charts.labels import as_number, as_rows, title_of_run
from glassformer.tracing import Trace

_TOP = 0.98  # quantile at which a colour scale ends, where a few cells are far larger
_FAR = 1.5


def chart_of_flow(
    trace: Trace, language: Language, *, stack: str | None = None, sequence: int = 0
) -> Chart:
    """The norm of what each part adds, and its share beside the state that it is added to.

    The last part is on top. Few positions, often the first, can be many times as large as all
    others: the colours end at the 98th percentile then.
    """
    say = language.say
    stream = trace.residual(stack)
    added, relative = [], []
    for part, (_, before) in zip(stream.parts, stream.states(), strict=False):
        size = part.value[sequence].float().norm(dim=-1).cpu()
        state = before[sequence].float().norm(dim=-1).cpu()
        added.append(size)
        relative.append(size / (size + state).clamp(min=1e-30))
    tokens = name_positions(trace, stream, sequence)
    names = tuple(part.name for part in reversed(stream.parts))

    def panel(title: str, values: Tensor, legend: str) -> Cells:
        return Cells(
            title=title,
            rows=say("chart.part"),
            columns=say("chart.token"),
            values=as_rows(values),
            row_names=names,
            column_names=tuple(tokens),
            legend=legend,
            most=_end_of_scale(values),
        )

    panels = (
        panel(say("chart.flow"), torch.stack(added).flip(0), say("chart.flow.norm")),
        panel(say("chart.flow.relative"), torch.stack(relative).flip(0), say("chart.flow.share")),
    )
    return Chart(panels, title_of_run(trace.model, tokens, language), say("chart.flow.caption"))


def _end_of_scale(values: Tensor) -> Number | None:
    """The 98th percentile, if the largest number is far beyond it."""
    ordered = values[values.isfinite()].sort().values
    if not len(ordered):
        return None
    top = float(ordered[min(len(ordered) - 1, int(_TOP * len(ordered)))])
    return as_number(top) if 0 < _FAR * top < float(ordered[-1]) else None
