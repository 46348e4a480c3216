"""Flow and why: the jobs answer what the stream, the lens, the attribution and why say."""

from typing import Any

import pytest

import glassformer as gf
from glassformer.analysis.neutral_text import record_reference
from glassformer.errors import GlassformerError, TraceError
from glassformer.languages import Language
from glassformer.render.charts.flow import chart_of_flow
from glassformer.render.charts.why import tell_verdict, tree_of_why
from glassformer.tracing import Trace
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms import flow
from glassformer.workbench.wire import JOBS
from glassformer.workbench.wire.requests import ReadingRequest

CAT = {"model": "translator", "text": "The cat sat on the mat.", "to": "fr"}
WRITER = {"model": "writer", "text": "Mrs. Weston smiled, and"}
FUNCTIONS = {
    "flow": flow.measure_flow,
    "lens": flow.read_lens,
    "attribute": flow.attribute_token,
    "why": flow.explain_token,
    "verdict": flow.judge_reasons,
}


@pytest.fixture(scope="module")
def memory() -> Memory:
    return Memory()


def read(memory: Memory, reading: dict[str, Any]) -> Trace:
    return memory.reading(ReadingRequest(**reading), lambda _: None).trace


def ask(memory: Memory, job: str, progress: Any = lambda _: None, **asked: Any) -> Any:
    form = JOBS[job]
    found = FUNCTIONS[job](form.asked.model_validate(asked), memory, progress)
    return form.answered.model_validate(found)


def test_the_flow_has_the_norms_of_the_stream(memory: Memory) -> None:
    found = ask(memory, "flow", **CAT, site="decoder.2.cross", query=1)
    trace = read(memory, CAT)
    stream = trace.residual("decoder")
    assert (found.stack, found.position, found.label) == ("decoder", 1, "Le")
    assert [each.name for each in found.borders] == stream.borders
    for border in found.borders:
        assert border.norm == pytest.approx(float(stream.after(border.name)[0, 1].norm()))
    added, relative = chart_of_flow(trace, Language("en")).panels
    norms = [row[1] for row in reversed(added.values)]  # type: ignore[union-attr]
    shares = [row[1] for row in reversed(relative.values)]  # type: ignore[union-attr]
    assert [each.norm for each in found.inflows] == pytest.approx(norms, rel=1e-3)
    assert [each.share for each in found.inflows] == pytest.approx(shares, rel=1e-3)
    assert [each.kind for each in found.inflows[:3]] == ["self", "cross", "mlp"]
    assert found.has_readout


def test_a_stack_that_writes_no_tokens_flows_without_a_lens(memory: Memory) -> None:
    asked = {**CAT, "site": "encoder.1.self", "query": 2}
    found = ask(memory, "flow", **asked)
    assert (found.stack, found.label, found.has_readout) == ("encoder", "␣cat", False)
    for job in ("lens", "attribute", "why"):
        with pytest.raises(TraceError, match="'encoder' has no readout"):
            ask(memory, job, **asked)


def test_the_lens_is_that_of_the_library(memory: Memory) -> None:
    found = ask(memory, "lens", **CAT, site="decoder.2.cross", query=1)
    lens = gf.logit_lens(read(memory, CAT), top=5)
    assert found.settled == lens.settled(1)
    for i, border in enumerate(found.borders):
        assert border.name == lens.borders[i]
        assert [each.token for each in border.top] == lens.labels[i][1]
        shares = [each.probability for each in border.top]
        assert shares == pytest.approx(lens.probabilities[i, 1].tolist(), rel=1e-3)
        assert border.entropy == pytest.approx(float(lens.entropy[i, 1]), rel=1e-3)
        assert border.divergence == pytest.approx(float(lens.divergence[i, 1]), abs=1e-4)
        assert border.rank == int(lens.rank[i, 1])


@pytest.mark.parametrize("by", ["part", "head"])
def test_contributions_are_those_of_the_library(memory: Memory, by: Any) -> None:
    asked = {**WRITER, "site": "decoder.2.self", "query": 3}
    found = ask(memory, "attribute", **asked, by=by)
    token = read(memory, WRITER).logits()[0, 3].argmax()
    expected = gf.attribute(read(memory, WRITER), int(token), position=3, by=by)
    assert (found.token, found.logit) == (expected.token, pytest.approx(expected.logit))
    assert len(found.shares) == len(expected.shares)
    for ours, theirs in zip(found.shares, expected.top(99), strict=True):
        assert (ours.name, ours.head) == (theirs.name, theirs.head)
        assert ours.value == pytest.approx(theirs.value)
    assert sum(each.value for each in found.shares) + found.remainder == pytest.approx(found.logit)
    other = ask(memory, "attribute", **asked, by=by, token=" a", against=" the")
    assert (other.token, other.against) == ("␣a", "␣the")


def test_reasons_and_verdict_are_those_of_the_library(memory: Memory) -> None:
    asked = {**WRITER, "site": "decoder.2.self", "query": 5, "depth": 2, "top": 4}
    reference = record_reference(memory.model("writer"))
    options: Any = {"position": 5, "depth": 2, "top": 4, "branches": 3}
    expected = gf.why(read(memory, WRITER), reference=reference, **options)
    found = ask(memory, "why", **asked)
    assert (found.token, found.against) == (expected.token, expected.against)
    assert found.logit == pytest.approx(expected.logit) and found.named == expected.named
    for code in ("en", "zh"):
        tree = tree_of_why(expected, Language(code)).as_dict()
        assert found.trees[code]["root"] == tree["root"]
        assert found.trees[code]["title"] == tree["title"]
    heard: list[float] = []
    verdict = ask(memory, "verdict", heard.append, **asked)
    assert heard, "the runs report progress, so that they can be given up"
    assert expected.verdict is not None and verdict.numbers is not None
    for name in ("whole", "kept", "removed", "none", "carried", "needed"):
        assert getattr(verdict.numbers, name) == pytest.approx(getattr(expected.verdict, name))
    assert verdict.sentence["zh"] == tell_verdict(expected, Language("zh"))


def test_another_reference_text_is_judged_by_its_means(memory: Memory) -> None:
    asked = {**WRITER, "site": "decoder.2.self", "query": 5, "depth": 1, "top": 4}
    text = "The ship sailed at noon, and nobody on the quay looked up."
    reference = record_reference(memory.model("writer"), text)
    expected = gf.why(
        read(memory, WRITER), position=5, depth=1, top=4, branches=3, reference=reference
    ).verdict
    usual = ask(memory, "verdict", **asked).numbers
    found = ask(memory, "verdict", **asked, reference=text).numbers
    assert expected is not None and found is not None and usual is not None
    assert found.none == pytest.approx(expected.none) and found.kept == pytest.approx(expected.kept)
    assert abs(found.none - usual.none) > 1e-3


def test_a_changed_run_is_explained_and_not_judged(memory: Memory) -> None:
    changed = {**WRITER, "change": "ablate(decoder.1.mlp)"}
    asked = {**changed, "site": "decoder.2.self", "query": 5, "depth": 1}
    assert (
        ask(memory, "why", **asked).logit != ask(memory, "why", **{**asked, "change": None}).logit
    )
    verdict = ask(memory, "verdict", **asked)
    assert verdict.numbers is None and "unchanged run" in verdict.sentence["en"]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"query": 77}, "6 queries; got query=77"),
        ({"token": "zyzzyva"}, "zyzzyva"),
        ({"site": "decoder.9.self"}, "decoder.9.self"),
    ],
)
def test_mistakes_are_sentences(memory: Memory, asked: dict[str, Any], sentence: str) -> None:
    given = {**WRITER, "site": "decoder.2.self", "query": 3, **asked}
    with pytest.raises(GlassformerError, match=sentence):
        ask(memory, "attribute", **given)
