"""Observing our own models: nothing changes, and what is kept says everything."""

import pytest
import torch

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.errors import TraceError
from glassformer.functional.reference import attention_weights
from glassformer.generation import beam_search, generate_tokens
from glassformer.layers import Core
from glassformer.models import Config, Norms, Output, Positions, build
from glassformer.tracing import Trace, record, watch
from letter_models import letter_model

V, C, L, S = 13, 24, 7, 5
KINDS = ("none", "sinusoidal", "learned", "rotary", "alibi", "relative")
kinds = pytest.mark.parametrize("kind", KINDS)
families = pytest.mark.parametrize("family", ["encoder", "decoder", "encoder_decoder"])


def model(family: str, kind: str = "rotary", **changes):
    plain = {
        "family": family,
        "vocab_size": V,
        "dim": C,
        "n_layers": 2,
        "n_heads": 4,
        "n_kv_heads": 2,
        "max_len": 24,
        "positions": Positions(kind=kind, n_buckets=8, max_distance=9),
        "output": Output(tied=False),
        "norms": Norms(),
        **changes,
    }
    built = build(Config(**plain)).double().eval()
    for part in built.parameters():
        torch.nn.init.normal_(part, std=0.4)
    return built


def inputs(family: str) -> tuple[tuple, dict]:
    tokens, source = torch.randint(0, V, (3, L)), torch.randint(0, V, (3, S))
    if family == "encoder":
        return (tokens,), {"mask": gf.Padding(torch.tensor([L, 2, 4]))}
    if family == "decoder":
        return (tokens,), {}
    return (source, tokens), {"source_mask": gf.Padding(torch.tensor([S, 1, 3]))}


def weights_by_definition(built, args, options) -> dict[str, torch.Tensor]:
    """What the definition says in float64, from operands that a hook of the test's own sees."""
    seen = {}

    def keep(module, args, options, _out):
        q, k, _ = args
        options = {n: x for n, x in options.items() if n != "dropout"}
        seen[id(module)] = attention_weights(q, k, **options)

    handles = [
        m.register_forward_hook(keep, with_kwargs=True)
        for m in built.modules()
        if isinstance(m, Core)
    ]
    built(*args, **options)
    for handle in handles:
        handle.remove()
    names = {}
    for path, module in built.named_modules():
        if isinstance(module, Core):
            stack, _, layer, part, _ = path.split(".")
            names[f"{stack}.{layer}.{'cross' if part == 'cross' else 'self'}"] = seen[id(module)]
    return names


@families
@kinds
def test_looking_changes_nothing_and_sees_everything(family: str, kind: str) -> None:
    built, (args, options) = model(family, kind), inputs(family)
    with torch.no_grad():
        before = built(*args, **options)
        expected = weights_by_definition(built, args, options)
        with watch(built, outputs=True) as trace:
            after = built(*args, **options)
    assert_same(after, before)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in built.modules())
    assert sorted(trace.names) == sorted(expected)
    for site in trace:
        dense = expected[site.name]
        for sequence in range(3):
            assert_close(site.weights(sequence=sequence), dense[sequence], 1e-12)
        assert_close(
            site.weights(head=3, rows=[2, 0], cols=slice(1, 3), sequence=1),
            dense[1, 3][[2, 0], 1:3],
            1e-12,
        )
        assert_close(site.received(head=1, sequence=2), dense[2, 1].sum(0), 1e-12)
        entropy = -(dense * dense.clamp(min=1e-300).log()).sum(-1)
        assert_close(site.entropy(sequence=1), entropy[1], 1e-12)
        assert_close(site.peak(sequence=1), dense[1].amax(-1), 1e-12)
        assert_close(site.map(0, 3, sequence=1).mass.sum(), dense[1, 0].sum(), 1e-12)
        top = site.top(2, k=2, sequence=0)
        assert_close(top.weights, dense[0, 2].topk(2).values, 1e-12)
        cell = site.arithmetic(3, 1, 0, sequence=1)
        assert cell.weight == pytest.approx(float(dense[1, 3, 1, 0]), abs=1e-12)
        assert site.row(3, 1, sequence=1).weights.tolist() == pytest.approx(dense[1, 3, 1].tolist())
        assert site.difference_from_output() < 1e-12


@kinds
@pytest.mark.parametrize("fixed", [False, True])
def test_generation_is_one_run(kind: str, fixed: bool) -> None:
    """The steps put together are the text read at once."""
    built, prompts = model("decoder", kind), [[1, 2, 3], [4, 5, 6]]
    plain = generate_tokens(built, prompts, max_new_tokens=6, fixed=fixed)
    with watch(built) as trace:
        assert generate_tokens(built, prompts, max_new_tokens=6, fixed=fixed) == plain
    text = torch.tensor([p + t[:-1] for p, t in zip(prompts, plain, strict=True)])
    assert len(trace.runs) == 1
    assert trace.run.texts["tokens"].tokens.tolist() == text.tolist()
    with watch(built) as whole, torch.no_grad():
        built(text)
    for ours, theirs in zip(trace, whole, strict=True):
        assert ours.shape == theirs.shape == (2, 4, 8, 8)
        for sequence in range(2):
            assert_close(ours.weights(sequence=sequence), theirs.weights(sequence=sequence), 1e-10)


@pytest.mark.parametrize("fixed", [False, True])
def test_padded_prompts_and_contexts(fixed: bool) -> None:
    built = model("encoder_decoder", "alibi")
    prompts, sources = [[1, 2, 3], [4]], [[5, 6], [7, 8, 9, 1]]
    with watch(built) as trace:
        written = generate_tokens(built, prompts, source=sources, max_new_tokens=4, fixed=fixed)
    cross, own = trace["decoder.1.cross"], trace["decoder.0.self"]
    assert cross.shape == (2, 4, 6, 4) and own.shape == (2, 4, 6, 6)
    assert cross.queries == "tokens" and cross.keys == "source"
    assert cross.weights(sequence=0)[..., 2:].abs().max() == 0  # padding of the source
    assert own.weights(sequence=1)[:, 2:, :2].abs().max() == 0  # and of the prompt
    text = torch.tensor([[4, *written[1][:-1]]])
    with watch(built) as alone, torch.no_grad():
        built(torch.tensor([sources[1]]), text)
    assert_close(own.weights(sequence=1)[:, 2:, 2:], alone["decoder.0.self"].weights(), 1e-10)
    assert_close(cross.weights(sequence=1)[:, 2:], alone["decoder.1.cross"].weights(), 1e-10)


@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
def test_beams_are_followed_to_where_they_went(family: str) -> None:
    built, prompt = model(family), [1, 2]
    source = [[3, 4, 5]] if family == "encoder_decoder" else None
    with watch(built) as trace:
        beam_search(built, [prompt], source=source, max_new_tokens=5, beams=3)
    tokens = trace.run.texts["tokens"].tokens
    assert tokens.shape == (3, 6)
    assert len({tuple(row) for row in tokens.tolist()}) == 3
    with watch(built) as whole, torch.no_grad():
        if source is None:
            built(tokens)
        else:
            built(torch.tensor(source * 3), tokens)
    for ours, theirs in zip(trace, whole, strict=True):
        for sequence in range(3):
            assert_close(ours.weights(sequence=sequence), theirs.weights(sequence=sequence), 1e-10)


def test_runs_follow_each_other() -> None:
    built = model("decoder")
    with watch(built) as trace, torch.no_grad():
        with pytest.raises(TraceError, match=r"nothing has passed through the model yet"):
            trace["decoder.0.self"]
        built(torch.tensor([[1, 2, 3]]))
        assert trace["decoder.0.self"].shape == (1, 4, 3, 3)  # while it is still open
        built(torch.tensor([[4, 5]]))
        assert trace["decoder.0.self"].shape == (1, 4, 2, 2)
    assert [run.texts["tokens"].tokens.tolist() for run in trace.runs] == [[[1, 2, 3]], [[4, 5]]]


def test_only_some_layers() -> None:
    built = model("decoder", n_layers=3)
    with watch(built, layers={0, 2}, device="cpu") as trace, torch.no_grad():
        built(torch.tensor([[1, 2, 3]]))
    assert trace.names == ["decoder.0.self", "decoder.2.self"]


def test_a_failure_leaves_no_hooks() -> None:
    built = model("decoder")
    with pytest.raises(gf.GlassformerError), watch(built):
        built(torch.tensor([[V]]))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in built.modules())


def test_two_observers_see_the_same() -> None:
    built = model("decoder")
    with watch(built) as outer, watch(built, layers=[1]) as inner, torch.no_grad():
        built(torch.tensor([[1, 2, 3]]))
    assert_same(outer["decoder.1.self"].q, inner["decoder.1.self"].q)
    assert len(outer) == 2 and len(inner) == 1


def test_labels_come_from_the_tokenizer() -> None:
    built = letter_model("decoder")
    with watch(built) as trace:
        text = gf.generate(built, "hi you", max_new_tokens=3)
    assert trace.labels() == [*"hi", "␣", *"you", *text[:-1].replace(" ", "␣")]


def test_rollout_is_the_product_of_layers() -> None:
    built = model("decoder")
    with watch(built) as trace, torch.no_grad():
        built(torch.tensor([[1, 2, 3]]))
    expected = torch.eye(3)
    for site in trace:
        expected = (0.5 * site.weights().float().mean(0) + 0.5 * torch.eye(3)) @ expected
    rolled = trace.rollout("decoder")
    assert_close(rolled, expected, 1e-6)
    assert_close(rolled.sum(-1), torch.ones(3), 1e-5)


def test_operands_of_anybody() -> None:
    q, k, v = torch.randn(3, 1, 2, 5, 4).unbind(0)
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    site = record(q, k, v, mask=gf.Causal(), out=out, name="mine")
    assert site.difference_from_output() < 1e-6
    assert_close(site.weights() @ v[0], out[0], 1e-6)


@pytest.mark.plain
def test_refusals() -> None:
    built = model("decoder")
    with watch(built) as trace, torch.no_grad():
        built(torch.tensor([[1, 2, 3]]))
    with pytest.raises(TraceError, match=r"got 'decoder.0.slf'. Did you mean 'decoder.0.self'"):
        trace["decoder.0.slf"]
    with pytest.raises(TraceError, match=r"decoder.0.self has heads 0 … 3; got head=4"):
        trace["decoder.0.self"].weights(head=4)
    with pytest.raises(TraceError, match=r"has sequences 0 … 0; got sequence=1"):
        trace["decoder.0.self"].entropy(sequence=1)
    with pytest.raises(TraceError, match=r"recorded without the model's output"):
        trace["decoder.0.self"].difference_from_output()
    with pytest.raises(TraceError, match=r"texts of this run are tokens; got 'source'"):
        trace.labels("source")
    with pytest.raises(TraceError, match=r"rollout needs self-attention of 'encoder'"):
        trace.rollout("encoder")
    assert repr(Trace()) == "Trace(nothing recorded yet)"
