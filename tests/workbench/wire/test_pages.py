"""What render/page describes has the form that the wire promises, for every mask and bias."""

import pytest
import torch

import glassformer as gf
from glassformer.functional.biases import BiasSum
from glassformer.render.page.document import describe_trace
from glassformer.render.page.sites import Tensors, pack_site
from glassformer.tracing import Run, Site, Trace
from glassformer.workbench.wire.pages import PageParts
from glassformer.workbench.wire.runs import RunAnswer, SiteAnswer
from render.page_traces import decoder, translator

OUTCOME = {"kind": "none", "text": None, "guesses": []}
MASKS = [
    gf.Causal() & gf.Window(2, 0),
    gf.Causal() | gf.Prefix(3),
    ~gf.Causal() & gf.Padding([4, 6]),
    gf.Documents(torch.tensor([[0, 0, 1, 1, 1, 2]] * 2)),
    gf.Explicit(torch.rand(6, 6) > 0.3),
]
SLOPES = gf.ALiBi(torch.tensor([0.5, 0.25, 0.125]))
BIASES = [
    SLOPES,
    gf.ExplicitBias(torch.randn(6, 6)),
    BiasSum(SLOPES, gf.ExplicitBias(torch.randn(6, 6))),
    gf.RelativeBuckets(torch.randn(8, 3), max_distance=9),
]


def validate(trace: Trace) -> PageParts:
    tensors = Tensors()
    page = describe_trace(trace, tensors)
    answer = {
        "page": page,
        "tensors": tensors.packed,
        "opened": pack_site(next(iter(trace))),
        "outcome": OUTCOME,
        "insight": None,
    }
    found = RunAnswer.model_validate(answer)
    assert found.page.model_dump() == page
    for site in trace:
        SiteAnswer.model_validate(pack_site(site))
    return found.page


@pytest.mark.parametrize("part", [*MASKS, *BIASES], ids=lambda part: type(part).__name__)
def test_masks_and_biases(part):
    q, k, v = torch.randn(3, 2, 3, 6, 5).unbind(0)
    name = "mask" if isinstance(part, gf.Mask) else "bias"
    site = Site(name="decoder.0.self", q=q, k=k, v=v, **{name: part})
    (run,) = validate(Trace([Run({site.name: site}, {})])).runs
    assert getattr(run.sites[0], name).kind == type(part).__name__


def test_traces_of_pages():
    assert len(validate(translator()).runs) == 2
    assert validate(decoder(7)).opening.site in (0, 1)
