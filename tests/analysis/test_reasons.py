"""Why a token was written: shares that add up, and a verdict that the model gives."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import glassformer as gf
from glassformer.analysis import Verdict
from glassformer.errors import TraceError
from letter_models import letter_model
from tracing.watched_architectures import built

TOKENS = torch.tensor([[5, 9, 4, 13, 24]])


def record(model: nn.Module, tokens: Tensor = TOKENS) -> gf.Trace:
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(tokens)
    return trace


def ablated(model: nn.Module, trace: gf.Trace, changes: list[Any], a: int, b: int) -> float:
    del trace
    with torch.no_grad(), gf.change(model, changes):
        out = model(TOKENS)
    logits = out if isinstance(out, Tensor) else out.logits
    return float(logits[0, -1, a] - logits[0, -1, b])


@pytest.mark.parametrize("name", ["ours", "llama", "gpt2", "gpt-neox"])
def test_the_chain_adds_up_and_the_verdict_is_the_models(name: str) -> None:
    model = letter_model("decoder", n_layers=2) if name == "ours" else built(name, "sdpa")
    trace = record(model)
    found = gf.why(trace, 7, against=11, top=3)
    logits = trace.logits()[0, -1]
    assert abs(found.logit - float(logits[7] - logits[11])) < 1e-4
    total = sum(reason.value for reason in found.reasons) + found.rest + found.remainder
    assert abs(total - found.logit) < 1e-6
    for reason in found.reasons:
        if reason.head is not None:
            inside = sum(look.value for look in reason.reasons) + reason.rest
            assert abs(inside - reason.value) < 1e-4
    # The same ablations, written out.
    site_heads = {site.name: site.n_heads for site in trace}
    named: dict[str, list[int]] = {}
    for reason in found.reasons:
        named.setdefault(reason.part, []).append(-1 if reason.head is None else reason.head)
    removed, kept, none = [], [], []
    for part in trace.residual().parts:
        of: Any = {"how": "mean", "of": trace, "skip": 1, "positions": range(1, 5)}
        if part.site is None:
            (removed if part.name in named else kept).append(gf.Ablate(part.name, **of))
            none.append(gf.Ablate(part.name, **of))
            continue
        heads = range(site_heads[part.site])
        mine = named.get(part.name, [])
        removed += [gf.Ablate(part.name, head=h, **of) for h in mine]
        kept += [gf.Ablate(part.name, head=h, **of) for h in heads if h not in mine]
        none += [gf.Ablate(part.name, head=h, **of) for h in heads]
    verdict = found.verdict
    assert verdict is not None
    for changes, value in (
        (removed, verdict.removed),
        (kept, verdict.kept),
        (none, verdict.none),
    ):
        assert abs(ablated(model, trace, changes, 7, 11) - value) < 1e-4
    assert abs(verdict.whole - found.logit) < 1e-4


def test_naming_every_part_is_faithful() -> None:
    model = letter_model("decoder", n_layers=2)
    found = gf.why(record(model), top=100, how="zero")
    assert found.verdict is not None
    assert abs(found.verdict.carried - 1) < 1e-4 and abs(found.verdict.needed - 1) < 1e-4
    assert found.verdict.random_kept == () and found.verdict.n_parts == len(found.named)
    if found.verdict.is_telling:
        assert found.verdict.is_faithful and "enough by themselves, needed" in str(found)


def test_tokens_are_chosen_where_none_are_given() -> None:
    model = letter_model("decoder", n_layers=2)
    trace = record(model)
    first, second = trace.logits()[0, -1].topk(2).indices.tolist()
    label = {i: gf.why(trace, i, against=3 if i != 3 else 4).token for i in (first, second)}
    found = gf.why(trace)
    assert (found.token, found.against) == (label[first], label[second])
    assert gf.why(trace, second).against == label[first]
    assert gf.why(trace, against=first).token == label[second]


def test_without_the_model_there_is_no_verdict(tmp_path) -> None:
    model = letter_model("decoder", n_layers=2)
    batch = record(model, TOKENS.repeat(2, 1))
    found = gf.why(batch, sequence=1)
    assert found.verdict is None and "made of one sequence" in found.without_verdict
    assert "not tested" in str(found)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"token": "zz"}, "A token must be one of the vocabulary"),
        ({"token": 99}, "Tokens are numbered 0"),
        ({"position": 5}, "There are 5 positions; got position=5"),
        ({"top": 0}, "top, branches and depth must be at least 1"),
        ({"depth": 0}, "top, branches and depth must be at least 1"),
        ({"how": "resample"}, "how must be 'mean' or 'zero'"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TraceError, match=said):
        gf.why(record(letter_model("decoder")), **given)


def test_a_trace_without_a_stream_is_refused() -> None:
    model = letter_model("decoder")
    with gf.watch(model) as trace:
        model(TOKENS)
    with pytest.raises(TraceError, match="holds no residual stream"):
        gf.why(trace)


@pytest.mark.parametrize("name", ["ours", "llama", "gpt2", "gpt-neox", "qwen3", "olmo2"])
def test_every_level_adds_up(name: str) -> None:
    model = letter_model("decoder", n_layers=3) if name == "ours" else built(name, "sdpa")
    found = gf.why(record(model), 7, against=11, top=6, depth=5, branches=2)
    seen = set()
    for reason in found.reasons:
        for each in reason.walk():
            seen.add(each.kind)
            assert not each.note
            if each.reasons and each.kind != "look":
                total = sum(below.value for below in each.reasons) + each.rest
                assert abs(total - each.value) < 1e-5
            if each.kind == "look":
                for below in each.reasons[:1]:
                    assert below.kind == "value" and abs(below.value - each.value) < 1e-5
    assert seen == {"writer", "look", "value", "score", "query", "key"}
    assert set(found.named) >= {reason.name for reason in found.reasons}
    assert "score above the mean" in str(found)


def test_a_score_is_the_models_above_the_mean_of_visible_keys() -> None:
    model = built("llama", "sdpa")
    trace = record(model)
    found = gf.why(trace, 7, against=11, top=100, depth=3, branches=100)
    n = 0
    for head in (r for r in found.reasons if r.head is not None):
        site = trace[head.part]
        for look in head.reasons:
            group = site.n_heads // site.k.shape[1]
            q, k = site.q[0, head.head].double(), site.k[0, head.head // group].double()
            scores = (k @ q[-1]) * q.shape[-1] ** -0.5
            (score,) = [each for each in look.reasons if each.kind == "score"]
            assert abs(score.value - float(scores[look.position] - scores.mean())) < 1e-6
            assert abs(look.weight - float(scores.softmax(-1)[look.position])) < 1e-6
            n += 1
    assert n > 8


def test_a_model_that_computes_attention_by_itself_is_not_split_and_says_so(monkeypatch) -> None:
    model = letter_model("decoder", n_layers=2)
    trace = record(model)
    monkeypatch.setattr(
        "glassformer.analysis.reasons.LookReader",
        lambda *_, **__: (_ for _ in ()).throw(TraceError("No way.")),
    )
    found = gf.why(trace, top=100, depth=3)
    notes = {each.note for reason in found.reasons for each in reason.walk()}
    assert notes == {"", "No way"} and "not split: No way" in str(found)


def test_random_sets_run_beside_the_named_parts() -> None:
    model = letter_model("decoder", n_layers=3)
    trace = record(model)
    first, again = gf.why(trace, top=3).verdict, gf.why(trace, top=3).verdict
    assert first is not None and first == again  # the draws are seeded
    assert len(first.random_kept) == len(first.random_removed) == 10
    assert len(set(first.random_kept)) > 1
    none = gf.why(trace, top=3, draws=0).verdict
    assert none is not None and none.random_kept == ()
    assert abs(none.kept - first.kept) < 1e-5


def test_the_means_of_another_text_stand_in() -> None:
    model = letter_model("decoder", n_layers=2)
    trace, other = record(model), record(model, torch.tensor([[7, 3, 3, 8, 19, 2, 4]]))
    found = gf.why(trace, 7, against=11, top=2, reference=other, draws=0)
    changes = []
    options: Any = {"how": "mean", "of": other, "skip": 1, "positions": range(1, 5)}
    for part in trace.residual().parts:
        heads = [None] if part.site is None else range(trace[part.site].n_heads)
        changes += [gf.Ablate(part.name, head=head, **options) for head in heads]
    assert found.verdict is not None
    assert abs(ablated(model, trace, changes, 7, 11) - found.verdict.none) < 1e-4


@pytest.mark.parametrize(
    ("kept", "removed", "none", "enough", "needed"),
    [
        (3.8, 0.1, -1.0, True, True),
        (3.8, 3.9, -1.0, True, False),
        (-0.9, 0.1, -1.0, False, True),
        (9.0, 3.9, -1.0, False, False),  # far too much is as wrong as too little
        (3.8, 0.1, 3.9, False, False),  # the means know the answer
    ],
)
def test_what_a_verdict_says(
    kept: float, removed: float, none: float, enough: bool, needed: bool
) -> None:
    found = Verdict(
        whole=4.0,
        kept=kept,
        removed=removed,
        none=none,
        how="mean",
        n_parts=2,
        random_kept=(0.0,) * 10,
        random_removed=(3.0,) * 10,
    )
    assert (found.is_enough, found.is_needed) == (enough, needed)
    assert found.is_faithful == (enough and needed)
    chance = replace(found, random_kept=(4.0,) * 10, random_removed=(-9.0,) * 10)
    assert not chance.is_enough and not chance.is_needed


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["ours", "llama", "qwen3", "gpt2"])
def test_on_a_gpu(name: str, dtype: torch.dtype) -> None:
    model = letter_model("decoder", n_layers=3) if name == "ours" else built(name, "sdpa")
    model = model.to("cuda", dtype)
    trace = record(model, TOKENS.cuda())
    found = gf.why(trace, 7, against=11, top=6, depth=4, branches=2)
    nodes = [each for reason in found.reasons for each in reason.walk()]
    assert {"score", "key"} <= {each.kind for each in nodes}
    assert not any(each.note for each in nodes) and found.verdict is not None
    effects = gf.head_effects(trace)
    assert len(effects.heads) == sum(site.n_heads for site in trace)
    assert bool(effects.divergence.isfinite().all())


def test_the_tree_can_be_had_without_a_verdict_and_reports_progress() -> None:
    model = letter_model("decoder", n_layers=2)
    trace, heard = record(model), list[float]()
    found = gf.why(trace, 7, against=11, top=3, judged=False, progress=heard.append)
    judged = gf.why(trace, 7, against=11, top=3)
    assert found.verdict is None and found.without_verdict == "no verdict was asked for"
    assert found.reasons == judged.reasons and judged.verdict is not None
    assert heard and heard == sorted(heard) and heard[0] == 0.0 and heard[-1] < 1
