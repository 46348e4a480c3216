"""The reported shapes are those that hooks of our own hear in a run on real tensors."""

import json
import re
from collections import defaultdict
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from glassformer.errors import ConfigError, ShapeError
from glassformer.models import PRESETS, Config, Norms, Output, Positions, build
from glassformer.models.shapes import shapes

KINDS = ("none", "sinusoidal", "learned", "rotary", "alibi", "relative")
LEAVES = ("linear", "norm", "lookup", "waves")


@st.composite
def configs(draw) -> dict:
    """A config as plain values, every variant of every part."""

    def one_of(*values):
        return draw(st.sampled_from(values))

    def either():
        return draw(st.booleans())

    family = one_of("encoder", "decoder", "encoder_decoder")
    n_kv_heads, group, head_dim = one_of(1, 2, 3), one_of(1, 2, 3), one_of(2, 4, 6)
    is_usual, place = either(), one_of("pre", "post")
    return {
        "family": family,
        "vocab_size": one_of(5, 7, 11),
        "dim": n_kv_heads * group * head_dim if is_usual else one_of(2, 4, 10),
        "n_layers": one_of(1, 2),
        "n_decoder_layers": one_of(None, 3) if family == "encoder_decoder" else None,
        "n_heads": n_kv_heads * group,
        "n_kv_heads": n_kv_heads,
        "head_dim": None if is_usual else head_dim,
        "hidden_dim": one_of(None, 3, 4, 8),
        "max_len": one_of(6, 13),
        "activation": one_of("relu", "gelu", "gelu_tanh", "silu"),
        "gated": either(),
        "biases": one_of("none", "qkv", "attention", "all"),
        "positions": {
            "kind": one_of(*KINDS),
            "layout": one_of("half", "interleaved"),
            "n_buckets": one_of(8, 12),
        },
        "norms": {
            "kind": one_of("layer", "rms"),
            "place": place,
            "first": place == "post" or either(),
            "bias": either(),
            "final": either(),
            "embedding": either(),
            "heads": either(),
        },
        "output": {
            "tied": either(),
            "bias": either(),
            "scale": one_of(1.0, 0.5),
            "masked_tokens": either(),
            "head_bias": either(),
            "classes": one_of([], ["a", "b", "c"]),
        },
        "scaled_embedding": either(),
        "n_token_types": one_of(0, 2),
        "softcap": one_of(None, 5.0),
        "window": one_of(None, 3 if family == "encoder" else 2),
    }


class Heard:
    """What hooks hear at every module of a model, in the order in which modules end."""

    def __init__(self, config: Config, B: int, L: int, S: int) -> None:
        self.config = config
        self.model = build(config).eval()
        self.order: list[str] = []
        self.at = defaultdict(list)
        self.leaves = {
            path
            for path, module in self.model.named_modules()
            if not list(module.children())
            and not path.endswith(("core", "head"))
            and not isinstance(module, nn.Identity)
        }
        for path, module in self.model.named_modules():
            module.register_forward_hook(self.hook(path), with_kwargs=True)
        source, tokens = (torch.randint(0, config.vocab_size, (B, n)) for n in (S, L))
        with torch.no_grad():
            if config.family == "encoder_decoder":
                self.model(source, tokens)
            else:
                hidden = self.model(tokens)
            if config.family == "encoder" and config.output.masked_tokens:
                self.model.fill(hidden)
            if config.family == "encoder" and config.output.classes:
                self.model.classify(hidden)

    def hook(self, path: str):
        def hear(_module, args, kwargs, out) -> None:
            self.order.append(path)
            given = [tuple(a.shape) for a in args if isinstance(a, Tensor)]
            scores = None
            if path.endswith("core"):
                q, k, _ = args
                k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
                scores = tuple(torch.einsum("bhld,bhsd->bhls", q, k).shape)
            self.at[path].append((given, tuple(out.shape), kwargs, scores))

        return hear

    def given(self, path: str, time: int = 0, which: int = 0):
        return self.at[path][time][0][which]

    def made(self, path: str, time: int = 0):
        return self.at[path][time][1]

    def options(self, path: str):
        return self.at[path][0][2]

    def parameters(self, path: str):
        return [tuple(p.shape) for p in self.model.get_submodule(path).parameters(recurse=False)]

    def leaf(self, site: str, operation: str, path: str, time: int = 0):
        made = self.made(path, time)
        return site, operation, path, [self.given(path, time)], [made], self.parameters(path)


def expected(heard: Heard):
    """All steps: site, operation, module, and the shapes of inputs, outputs and parameters."""
    names = [n for n in ("encoder", "decoder") if hasattr(heard.model, n)]
    for time, name in enumerate(names):
        yield from expected_embedding(heard, name, time)
        n_blocks = len(heard.model.get_submodule(f"{name}.blocks"))
        for i in range(n_blocks):
            yield from expected_block(heard, name, i)
        if heard.config.norms.final:
            yield heard.leaf(f"{name}.final", "norm", f"{name}.final_norm")
    yield from expected_heads(heard)


def expected_embedding(heard: Heard, name: str, time: int):
    config, site = heard.config, f"{name}.embedding"
    x = heard.made("embedding", time)
    yield heard.leaf(site, "lookup", "embedding", time)
    if config.scaled_embedding:
        yield site, "scale", "embedding", [x], [x], []
    if hasattr(heard.model, "token_types"):
        yield heard.leaf(site, "lookup", "token_types")
        yield site, "add", "", [x, heard.made("token_types")], [heard.given(name)], []
    if config.positions.kind in ("learned", "sinusoidal"):
        path = f"{name}.positions"
        behind = f"{name}.embedding_norm" if config.norms.embedding else f"{name}.blocks.0"
        kind = "lookup" if config.positions.kind == "learned" else "waves"
        yield heard.leaf(site, kind, path)
        yield site, "add", name, [x, heard.made(path)], [heard.given(behind)], []
    if config.norms.embedding:
        yield heard.leaf(site, "norm", f"{name}.embedding_norm")
    tables = heard.options(f"{name}.blocks.0")["tables"]
    if tables is not None:
        positions = heard.options(name)["positions"]
        made = [tuple(t.shape) for t in tables]
        yield site, "angles", name, [tuple(positions.shape)], made, []


def expected_block(heard: Heard, name: str, i: int):
    block = f"{name}.blocks.{i}"
    has_cross = heard.model.get_submodule(block).has_cross
    parts = ["attention", "cross", "feed_forward"] if has_cross else ["attention", "feed_forward"]
    is_pre = heard.config.norms.place == "pre"
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        site = f"{name}.{i}.{'self' if part == 'attention' else part}"
        norm, path = f"{block}.{part}_norm", f"{block}.{part}"
        x = heard.given(norm) if is_pre else heard.given(path)
        if not is_pre:
            summed = heard.given(norm)
        elif following is None:
            summed = heard.made(block)
        else:
            summed = heard.given(f"{block}.{following}_norm")
        if is_pre and not isinstance(heard.model.get_submodule(norm), nn.Identity):
            yield heard.leaf(site, "norm", norm)
        if part == "feed_forward":
            yield from expected_feed_forward(heard, site, path)
        else:
            yield from expected_attention(heard, site, path)
        yield site, "residual", block, [x, heard.made(path)], [summed], []
        if not is_pre:
            yield heard.leaf(site, "norm", norm)


def expected_attention(heard: Heard, site: str, path: str):
    core = f"{path}.core"
    (q, k, v), out, options, scores = heard.at[core][0]
    stack = site.partition(".")[0]
    if site.endswith("cross"):
        yield heard.leaf(site, "linear", f"{path}.q")
        yield site, "split", path, [heard.made(f"{path}.q")], [q], []
        assert heard.given(f"{path}.kv") == heard.given(path, which=1) == heard.made("encoder")
        yield heard.leaf(site, "linear", f"{path}.kv")
        yield site, "split", path, [heard.made(f"{path}.kv")], [k, v], []
    else:
        has_norm = heard.config.norms.heads
        queries = heard.given(f"{path}.q_norm") if has_norm else q
        keys = heard.given(f"{path}.k_norm") if has_norm else k
        yield heard.leaf(site, "linear", f"{path}.qkv")
        yield site, "split", path, [heard.made(f"{path}.qkv")], [queries, keys, v], []
        if has_norm:
            yield heard.leaf(site, "norm", f"{path}.q_norm")
            yield heard.leaf(site, "norm", f"{path}.k_norm")
        if heard.options(path)["tables"] is not None:
            tables = [tuple(t.shape) for t in heard.options(path)["tables"]]
            yield site, "rotate", path, [*tables, queries, keys], [q, k], []
    yield site, "scores", core, [q, k], [scores], []
    if options["softcap"] is not None:
        yield site, "softcap", core, [scores], [scores], []
    if options["bias"] is not None:
        buckets = getattr(heard.model.get_submodule(stack), "buckets", None)
        table = [] if buckets is None else [tuple(buckets.shape)]
        yield site, "bias", core, [scores], [scores], table
    if options["mask"] is not None:
        yield site, "mask", core, [scores], [scores], []
    yield site, "softmax", core, [scores], [scores], []
    yield site, "attend", core, [scores, v], [out], []
    yield site, "merge", path, [out], [heard.given(f"{path}.out")], []
    yield heard.leaf(site, "linear", f"{path}.out")


def expected_feed_forward(heard: Heard, site: str, path: str):
    wide, hidden = heard.made(f"{path}.up"), heard.given(f"{path}.down")
    activation = heard.config.activation.removesuffix("_tanh")
    yield heard.leaf(site, "linear", f"{path}.up")
    if heard.config.gated:
        yield site, "halve", path, [wide], [hidden, hidden], []
        yield site, activation, path, [hidden], [hidden], []
        yield site, "multiply", path, [hidden, hidden], [hidden], []
    else:
        yield site, activation, path, [wide], [hidden], []
    yield heard.leaf(site, "linear", f"{path}.down")


def expected_heads(heard: Heard):
    config, x = heard.config, heard.made([n for n in heard.order if "." not in n and n][-1])
    embedding = heard.parameters("embedding")
    if config.family != "encoder":
        x = heard.given("head")
        own = heard.parameters("head")
        if config.output.scale != 1:
            yield "head", "scale", "head", [x], [x], []
        weights = embedding + own if config.output.tied else own
        yield "head", "linear", "head", [x], [heard.made("head")], weights
        return
    if config.output.masked_tokens:
        dense, norm = heard.made("head.dense"), heard.given("head.norm")
        yield heard.leaf("head", "linear", "head.dense")
        yield "head", config.activation.removesuffix("_tanh"), "head", [dense], [norm], []
        yield heard.leaf("head", "norm", "head.norm")
        weights = embedding + heard.parameters("head")
        yield "head", "linear", "head", [heard.made("head.norm")], [heard.made("head")], weights
    if config.output.classes:
        site, dense = "classifier", heard.made("classifier.dense")
        first = heard.given("classifier.dense")
        yield site, "pick", site, [heard.given(site)], [first], []
        yield heard.leaf(site, "linear", "classifier.dense")
        yield site, "tanh", site, [dense], [heard.given("classifier.out")], []
        yield heard.leaf(site, "linear", "classifier.out")


def numbers(step):
    return [[s.numbers for s in g] for g in (step.inputs, step.outputs, step.parameters)]


def reported(trace):
    return [(s.site, s.operation, s.module, *numbers(s)) for s in trace.steps]


def traced(config: Config, B: int, L: int, S: int):
    context = S if config.family == "encoder_decoder" else None
    return shapes(config, batch=B, length=L, context=context)


def worth(text: str, sizes: dict[str, int]) -> int:
    """The number that letters stand for."""
    return int(eval(re.sub(r"2(?=[KF])", "2*", text).replace("·", "*"), {}, sizes))


sizes = st.integers(1, 6)


@settings(max_examples=60)
@given(configs(), sizes, sizes, sizes)
def test_every_shape_is_what_hooks_hear(plain: dict, B: int, L: int, S: int) -> None:
    config = Config.from_dict(plain)
    heard, trace = Heard(config, B, L, S), traced(config, B, L, S)
    assert reported(trace) == list(expected(heard))
    # No module is left out, and all stand in the order of the run.
    leaves = [s.module for s in trace.steps if s.operation in LEAVES and s.module != "head"]
    assert leaves == [path for path in heard.order if path in heard.leaves]
    cores = [s.module for s in trace.steps if s.operation == "attend"]
    assert cores == [path for path in heard.order if path.endswith("core")]


@settings(max_examples=25)
@given(configs(), sizes, sizes, sizes)
def test_letters_stand_for_the_numbers(plain: dict, B: int, L: int, S: int) -> None:
    config = Config.from_dict(plain)
    trace = traced(config, B, L, S)
    known = {
        "B": B,
        "L": L,
        "S": S,
        "C": config.dim,
        "H": config.n_heads,
        "K": config.n_kv_heads,
        "D": config.head_dim,
        "F": config.hidden_dim,
        "V": config.vocab_size,
        "max_len": config.max_len,
    }
    assert trace.sizes == {letter: known[letter] for letter in trace.sizes}
    assert list(trace.sizes) == [letter for letter in known if letter in trace.sizes]
    for step in trace.steps:
        for shape in (*step.inputs, *step.outputs, *step.parameters):
            assert tuple(worth(text, known) for text in shape.letters) == shape.numbers


DIFFERENT = Config(
    family="encoder_decoder",
    vocab_size=97,
    dim=22,
    n_layers=2,
    n_heads=6,
    n_kv_heads=3,
    head_dim=10,
    hidden_dim=37,
    max_len=29,
    gated=True,
    positions=Positions(kind="rotary"),
    norms=Norms(kind="rms", heads=True),
)
ALIKE = DIFFERENT.replace(
    vocab_size=4, dim=4, n_heads=4, n_kv_heads=4, head_dim=4, hidden_dim=4, max_len=4
)


@pytest.mark.parametrize("kind", KINDS)
def test_letters_are_right_where_sizes_are_alike(kind: str) -> None:
    positions = Positions(kind=kind, n_buckets=4)
    alike = shapes(ALIKE.replace(positions=positions), batch=4, length=4, context=4)
    different = shapes(DIFFERENT.replace(positions=positions), batch=2, length=5, context=7)

    def letters(trace):
        return [
            (s.site, s.operation, [(t.name, t.letters) for t in (*s.inputs, *s.outputs)])
            for s in trace.steps
        ]

    assert letters(alike) == letters(different)
    assert set(alike.sizes.values()) == {4}


def test_the_numbers_of_the_twin_may_be_those_of_the_model() -> None:
    config = DIFFERENT.replace(vocab_size=10_009, dim=10_007 * 2, hidden_dim=10_037)
    texts = [[o.letters for o in s.outputs] for s in shapes(config, batch=10_079).steps]
    assert texts == [[o.letters for o in s.outputs] for s in shapes(DIFFERENT).steps]


@pytest.mark.parametrize("kind", KINDS)
def test_the_dtype_does_not_matter(kind: str) -> None:
    config = DIFFERENT.replace(positions=Positions(kind=kind))
    before = shapes(config)
    torch.set_default_dtype(torch.bfloat16)
    try:
        assert shapes(config) == before
    finally:
        torch.set_default_dtype(torch.float32)


def lines(trace, site: str):
    """A site as one would write it: operation, then what comes out."""
    return [
        f"{s.operation}: " + " ".join(f"{o.name}[{','.join(o.letters)}]" for o in s.outputs)
        for s in trace.steps
        if s.site == site
    ]


def test_the_letters_of_every_site() -> None:
    trace = shapes(DIFFERENT, batch=2, length=5, context=7)
    assert lines(trace, "encoder.embedding") == [
        "lookup: x[B,S,C]",
        "angles: cos[S,D/2] sin[S,D/2]",
    ]
    assert lines(trace, "encoder.1.self") == [
        "norm: x[B,S,C]",
        "linear: x[B,S,(H+2K)·D]",
        "split: q[B,H,S,D] k[B,K,S,D] v[B,K,S,D]",
        "norm: q[B,H,S,D]",
        "norm: k[B,K,S,D]",
        "rotate: q[B,H,S,D] k[B,K,S,D]",
        "scores: scores[B,H,S,S]",
        "softmax: weights[B,H,S,S]",
        "attend: out[B,H,S,D]",
        "merge: x[B,S,H·D]",
        "linear: x[B,S,C]",
        "residual: x[B,S,C]",
    ]
    assert lines(trace, "decoder.0.cross") == [
        "norm: x[B,L,C]",
        "linear: x[B,L,H·D]",
        "split: q[B,H,L,D]",
        "linear: x[B,S,2K·D]",
        "split: k[B,K,S,D] v[B,K,S,D]",
        "scores: scores[B,H,L,S]",
        "softmax: weights[B,H,L,S]",
        "attend: out[B,H,L,D]",
        "merge: x[B,L,H·D]",
        "linear: x[B,L,C]",
        "residual: x[B,L,C]",
    ]
    assert lines(trace, "decoder.1.self")[6:9] == [
        "scores: scores[B,H,L,L]",
        "mask: scores[B,H,L,L]",
        "softmax: weights[B,H,L,L]",
    ]
    assert lines(trace, "decoder.1.feed_forward") == [
        "norm: x[B,L,C]",
        "linear: x[B,L,2F]",
        "halve: gate[B,L,F] up[B,L,F]",
        "gelu: x[B,L,F]",
        "multiply: x[B,L,F]",
        "linear: x[B,L,C]",
        "residual: x[B,L,C]",
    ]
    assert lines(trace, "decoder.final") == ["norm: x[B,L,C]"]
    assert lines(trace, "head") == ["linear: logits[B,L,V]"]


def test_every_input_was_given_or_made_before() -> None:
    trace = shapes(DIFFERENT)
    assert {s.name for step in trace.steps for s in step.inputs if s.step is None} == {
        "source",
        "tokens",
        "positions",
    }
    for i, step in enumerate(trace.steps):
        assert all(output.step == i for output in step.outputs)
        for given_shape in step.inputs:
            if given_shape.step is not None:
                assert given_shape.step < i
                made = trace.steps[given_shape.step].outputs
                assert given_shape.numbers in [shape.numbers for shape in made]
    named = {
        (step.operation, shape.name)
        for step in trace.steps
        if step.site == "decoder.0.cross"
        for shape in step.inputs
    }
    assert {("linear", "context"), ("scores", "q"), ("scores", "k"), ("attend", "v")} <= named


def test_notes_say_what_shapes_do_not() -> None:
    trace = shapes(DIFFERENT.replace(window=3, scaled_embedding=True))
    notes = {(step.operation, step.note) for step in trace.steps if step.note}
    assert notes == {
        ("norm", "RMSNorm"),
        ("mask", "Causal() & Window(left=2)"),
        ("linear", "tied"),
        ("scale", str(22**0.5)),
    }
    untied = shapes(DIFFERENT.replace(output=Output(tied=False)))
    assert untied.steps[-1].note == ""
    assert untied.steps[-1].parameters[0].name == "head.weight"


def test_a_fused_kernel_never_holds_scores_and_weights() -> None:
    unheld = {s.operation for s in shapes("gpt-2").steps if not s.held}
    assert unheld == {"scores", "mask", "softmax"}


def test_a_comparison_that_could_not_fail_would_be_worthless() -> None:
    heard, trace = Heard(DIFFERENT, 2, 5, 7), shapes(DIFFERENT, batch=2, length=5, context=7)
    right = list(expected(heard))
    assert reported(trace) == right
    for i, step in enumerate(trace.steps):
        first = replace(step.outputs[0], numbers=(1, *step.outputs[0].numbers[1:]))
        wrong = replace(step, outputs=(first, *step.outputs[1:]))
        for steps in (
            trace.steps[:i] + trace.steps[i + 1 :],
            (*trace.steps[:i], wrong, *trace.steps[i + 1 :]),
            (*trace.steps[:i], step, *trace.steps[i:]),
        ):
            assert reported(replace(trace, steps=steps)) != right


def test_blocks_that_are_alike_are_one_section() -> None:
    trace = shapes(DIFFERENT.replace(n_decoder_layers=3))
    sections = [(s.stack, s.part, s.blocks) for s in trace.sections()]
    assert sections == [
        ("encoder", "embedding", ()),
        ("encoder", "block", (0, 1)),
        ("encoder", "final", ()),
        ("decoder", "embedding", ()),
        ("decoder", "block", (0, 1, 2)),
        ("decoder", "final", ()),
        ("", "head", ()),
    ]
    assert {s.site for s in trace.sections()[4].steps} == {
        "decoder.0.self",
        "decoder.0.cross",
        "decoder.0.feed_forward",
    }


def test_a_block_that_differs_is_a_section_of_its_own() -> None:
    trace = shapes(DIFFERENT.replace(n_decoder_layers=4))
    steps = tuple(
        replace(s, note="Window(left=2)") if (s.site, s.operation) == (site, "mask") else s
        for site in ("decoder.1.self",)
        for s in trace.steps
    )
    blocks = [s.blocks for s in replace(trace, steps=steps).sections() if s.stack == "decoder"]
    assert blocks == [(), (0, 2, 3), (1,), ()]


@pytest.mark.parametrize(
    "name", ["transformer-base", "bert-base", "gpt-1", "gpt-2", "llama-3.2-1b", "laptop-translator"]
)
def test_presets_end_in_logits(name: str) -> None:
    trace = shapes(name, batch=3)
    config = PRESETS[name]
    assert trace.name == name and trace.family == config.family
    assert trace.steps[-1].outputs[0].name == "logits"
    assert trace.steps[-1].outputs[0].numbers == (3, 10, config.vocab_size)
    assert sum(s.operation == "attend" for s in trace.steps) == config.n_layers + (
        2 * config.decoder_layers if config.family == "encoder_decoder" else 0
    )


def test_json_comes_back() -> None:
    trace = shapes(DIFFERENT)
    plain = json.loads(json.dumps(trace.as_dict()))
    assert len(plain["steps"]) == len(trace.steps)
    step = next(s for s in plain["steps"] if s["module"] == "decoder.blocks.1.cross.kv")
    assert step["site"] == "decoder.1.cross" and step["operation"] == "linear"
    assert step["inputs"][0]["name"] == "context"
    assert step["outputs"][0]["letters"] == ["B", "S", "2K·D"]
    assert step["outputs"][0]["numbers"] == [2, 14, 60]
    assert step["parameters"][0]["name"] == "decoder.blocks.1.cross.kv.weight"
    assert step["parameters"][0]["numbers"] == [60, 22]


def test_short_models_get_short_examples() -> None:
    trace = shapes(DIFFERENT.replace(max_len=3, positions=Positions(kind="learned")))
    assert (trace.sizes["L"], trace.sizes["S"]) == (3, 3)


def test_long_runs_take_no_memory() -> None:
    for kind in ("alibi", "rotary"):
        config = DIFFERENT.replace(positions=Positions(kind=kind), softcap=3.0, window=5)
        assert shapes(config, length=300_000, context=200_000).sizes["L"] == 300_000


@pytest.mark.plain
@pytest.mark.parametrize(
    ("change", "sizes", "error", "sentence"),
    [
        ({}, {"batch": 0}, ConfigError, "batch must be at least 1; got batch=0."),
        ({}, {"length": -3}, ConfigError, "length must be at least 1; got length=-3."),
        ({}, {"context": 0}, ConfigError, "context must be at least 1; got context=0."),
        (
            {"family": "decoder"},
            {"context": 5},
            ConfigError,
            "Only an encoder-decoder has a context beside its tokens; got context=5 for "
            "family='decoder'. Leave it out.",
        ),
        (
            {"positions": Positions(kind="learned")},
            {"length": 30},
            ShapeError,
            "At most max_len=29 tokens have a place; got 30.",
        ),
        ({}, {"length": 10**12}, ShapeError, "fewer than 2⁶³ bytes; got batch=2, length=10000000"),
        ({}, {"batch": 10**30}, ShapeError, "length=10, context=14. Use smaller ones."),
    ],
)
def test_refusals(change: dict, sizes: dict, error: type, sentence: str) -> None:
    with pytest.raises(error, match=re.escape(sentence)):
        shapes(DIFFERENT.replace(**change), **sizes)


@pytest.mark.plain
def test_an_unknown_preset_is_named() -> None:
    with pytest.raises(ConfigError, match=r"Presets are transformer-base, .*; got 'gpt-9'\."):
        shapes("gpt-9")
