"""A trace as a whole: its runs, and what it says of names that come from anywhere."""

import pytest
import torch

from glassformer.errors import TraceError
from glassformer.tracing import Run, Trace, TracedText, record

ODD = "\x1b[31mred"


@pytest.fixture
def trace() -> Trace:
    runs = []
    for n in (3, 5):
        q, k, v = torch.randn(3, 1, 2, n, 4).unbind(0)
        words = TracedText(torch.arange(n)[None], [])
        runs.append(Run({ODD: record(q, k, v, name=ODD)}, {"tokens": words}, {"odd\x9b": "\x07"}))
    return Trace(runs, {"library": "mine"})


def test_one_run_alone(trace: Trace) -> None:
    first = trace.only(0)
    assert first.runs == [trace.runs[0]] and first.model == trace.model
    assert first[ODD].shape == (1, 2, 3, 3)
    assert trace.only(-1)[ODD] is trace[ODD]
    for run in (2, -3):
        with pytest.raises(TraceError, match=rf"has runs 0 … 1; got run={run}"):
            trace.only(run)


def test_names_steer_no_terminal(trace: Trace) -> None:
    said = [repr(trace)]
    for name in ("other", "odd\x9b"):
        with pytest.raises(TraceError) as caught:
            trace[name]
        said.append(str(caught.value))
    with pytest.raises(TraceError) as caught:
        trace.labels("source")
    said.append(str(caught.value))
    assert all(each.isprintable() for each in said)
    assert "\\x1b[31mred" in said[0] and "\\x9b could not be recorded: \\x07" in said[2]


@pytest.mark.plain
def test_a_site_is_found_by_name_alone() -> None:
    site = record(*torch.randn(3, 1, 2, 5, 4).unbind(0), name="decoder.0.self")
    trace = Trace([Run(sites={site.name: site})])
    with pytest.raises(TraceError, match="found by its name, one of decoder"):
        trace[0]  # type: ignore[index]
