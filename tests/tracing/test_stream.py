"""The residual stream: the model's own bits at every border, and parts that add up."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import glassformer as gf
from closeness import assert_close
from glassformer.errors import InterventionError, RecordingWarning, TraceError
from glassformer.models.checkpoints import load
from glassformer.models.config import Norms
from glassformer.tracing import Trace, watch
from glassformer.tracing.stream_listener import find_blocks
from letter_models import letter_model
from tiny_models import tiny
from tracing.watched_architectures import ARCHITECTURES, NOT_THERE, built, inputs, same

REFUSED = {
    "mobilebert": "NoNorm is neither a LayerNorm nor an RMSNorm",
    "gemma3n": "its blocks read no (B, L, C) tensor",
    "swin": "its output is not its input plus what its parts add",
}
ROUNDED = {"deberta"}  # its norm is not PyTorch's, and rounds at other places
NEW = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False}


def build(name: str) -> nn.Module:
    try:
        return built(name, "sdpa")
    except ValueError as error:
        assert NOT_THERE in str(error)
        return built(name, "eager")


def read_blocks(model: nn.Module, trace: Trace, run) -> dict[str, list[Tensor]]:
    """What every block returns, by stack, as plain hooks see it."""
    from glassformer.tracing.model_lookup import ModuleTree
    from glassformer.tracing.sources.transformers_layout import TransformersLayout

    tree = ModuleTree(model)
    found: dict[str, list[Tensor]] = {name: [] for name in trace.run.streams}
    handles = []
    for block, stack in find_blocks(tree, TransformersLayout.of(tree).places).items():

        def keep(_module, _args, out, stack=stack) -> None:
            found[stack].append((out if isinstance(out, Tensor) else out[0]).clone())

        handles.append(block.register_forward_hook(keep))
    run()
    for handle in handles:
        handle.remove()
    return found


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # theirs
def test_every_architecture_is_followed_or_refused_with_a_reason(name: str) -> None:
    model = build(name)
    given = inputs(model, ARCHITECTURES[name].reads)
    with torch.no_grad():
        plain = model(**given)
        with watch(model, residual=True) as trace:
            assert same(model(**given), plain)
        assert same(model(**given), plain)
    refusals = {n: why for n, why in trace.run.refusals.items() if n.endswith(".stream")}
    if name in REFUSED:
        assert set(refusals.values()) == {REFUSED[name]} and not trace.run.streams
        return
    assert not refusals and trace.run.streams
    with torch.no_grad():
        theirs = read_blocks(model, trace, lambda: model(**given))
    for stack, stream in trace.run.streams.items():
        assert {p.kind for p in stream.parts} & {"self", "cross"}
        assert {p.site for p in stream.parts if p.site} <= {*trace.names, *trace.run.refusals}
        last = {part.layer: part.name for part in stream.parts}
        states = dict(stream.states())
        assert len(theirs[stack]) == len(last)
        for layer, output in enumerate(theirs[stack]):
            if name in ROUNDED:
                assert_close(states[last[layer]], output, 1e-6)
            else:
                assert torch.equal(states[last[layer]], output), f"{stack}.{layer}"
        for sequence in range(len(stream.start)):
            shares = stream.shares(sequence=sequence, row=1)
            end = stream.end[sequence, 1].double()
            assert_close(torch.stack(list(shares.values())).sum(0), end, 1e-5)


@pytest.mark.parametrize("family", ["decoder", "encoder", "encoder_decoder"])
@pytest.mark.parametrize("place", ["pre", "post"])
@pytest.mark.parametrize("kind", ["rms", "layer"])
def test_our_models_are_followed(family: str, place: str, kind: str) -> None:
    torch.manual_seed(3)
    config = gf.Config(
        family=family,
        vocab_size=13,
        dim=12,
        n_layers=2,
        n_heads=3,
        max_len=16,
        norms=Norms(place=place, kind=kind),
    )
    model = gf.build(config).eval()
    for part in model.parameters():
        part.data.normal_(std=0.4)
    tokens = torch.randint(13, (2, 5))
    given = (tokens, tokens[:, :4]) if family == "encoder_decoder" else (tokens,)
    found: list[Tensor] = []
    with torch.no_grad():
        plain = model(*given)
        with watch(model, residual=True) as trace:
            assert torch.equal(model(*given), plain)
        for stack in ("encoder", "decoder"):
            for block in getattr(model, stack).blocks if hasattr(model, stack) else ():
                block.register_forward_hook(lambda _m, _a, out: found.append(out))
        model(*given)
    states = [dict(s.states()) for s in trace.run.streams.values()]
    ends = [
        states[i][p.name]
        for i, stream in enumerate(trace.run.streams.values())
        for p in stream.parts
        if p.kind == "mlp"
    ]
    assert len(ends) == len(found)
    for ours, theirs in zip(ends, found, strict=True):
        assert torch.equal(ours, theirs)
    stream = trace.residual()
    total = torch.stack(list(stream.shares().values())).sum(0)
    assert_close(total, stream.end[0, -1].double(), 1e-5)


@pytest.mark.parametrize("name", ["llama", "gpt2", "bart"])
def test_steps_of_generation_are_one_stream(name: str) -> None:
    model = tiny(name)
    prompt = torch.tensor([[3, 4, 5], [6, 7, 8]])
    with watch(model, residual=True) as trace:
        text = model.generate(prompt, num_beams=3, num_return_sequences=1, **NEW)
    stream = trace.residual("decoder")
    tokens = trace.run.texts["tokens"].tokens
    assert stream.start.shape[:2] == tokens.shape
    assert text is not None
    given = {"input_ids": tokens}
    if name == "bart":
        given = {"input_ids": prompt.repeat_interleave(3, 0), "decoder_input_ids": tokens}
    with torch.no_grad(), watch(model, residual=True) as whole:
        model(**given)
    for ours, theirs in zip(stream.parts, whole.residual("decoder").parts, strict=True):
        assert ours.name == theirs.name
        assert_close(ours.value, theirs.value, 1e-5)


def test_our_generation_is_one_stream() -> None:
    model = letter_model("decoder")
    with watch(model, residual=True) as trace:
        gf.generate(model, "abc", temperature=0, max_new_tokens=5)
    tokens = trace.run.texts["tokens"].tokens
    with torch.no_grad(), watch(model, residual=True) as whole:
        model(tokens)
    for ours, theirs in zip(trace.residual().parts, whole.residual().parts, strict=True):
        assert_close(ours.value, theirs.value, 1e-5)


def test_rows_are_selected() -> None:
    model, tokens = tiny("llama"), torch.arange(3, 12)[None]
    with torch.no_grad():
        with watch(model, residual=True, rows=[2, 5]) as some:
            model(tokens)
        with watch(model, residual=True) as every:
            model(tokens)
    assert some.residual().rows == (2, 5)
    assert torch.equal(some.residual().end, every.residual().end[:, [2, 5]])


@pytest.mark.parametrize("place", ["pre", "post"])
@pytest.mark.parametrize(
    ("layers", "gaps"),
    [([2], ["0-1", "3-4"]), ([0, 2, 4], ["1", "3"]), ([4], ["0-3"]), ([0], ["1-4"])],
)
def test_layers_that_are_not_selected_are_one_part(
    place: str, layers: list[int], gaps: list[str], tmp_path: Path
) -> None:
    torch.manual_seed(5)
    model = letter_model("decoder", n_layers=5, norms=Norms(place=place))
    for part in model.parameters():
        part.data.normal_(std=0.4)
    tokens = torch.tensor([[3, 4, 5, 6, 7]])
    with torch.no_grad():
        with watch(model, residual=True) as every:
            plain = model(tokens)
        with watch(model, residual=True, layers=layers) as some:
            assert torch.equal(model(tokens), plain)
    some.save(tmp_path / "some.trace")
    for trace in (some, Trace.load(tmp_path / "some.trace")):
        stream = trace.residual()
        assert [p.name for p in stream.parts if p.kind == "layers"] == [
            f"decoder.{gap}" for gap in gaps
        ]
        assert {p.layer for p in stream.parts if p.kind != "layers"} == set(layers)
        known, ends = dict(every.residual().states()), {p.layer: p.name for p in stream.parts}
        for layer, name in ends.items():
            state = known[f"decoder.{layer}.mlp"]
            assert torch.equal(dict(stream.states())[name], state)
        shares = torch.stack(list(stream.shares(row=2).values())).sum(0)
        assert_close(shares, stream.end[0, 2].double(), 1e-5)
    lens, whole = gf.logit_lens(some), gf.logit_lens(every)
    assert torch.equal(lens.probabilities[-1], whole.probabilities[-1])
    found = gf.attribute(some, "a")
    assert abs(found.remainder) < 1e-4
    assert {f"decoder.{gap}" for gap in gaps} <= {share.name for share in found.shares}
    with pytest.raises(InterventionError, match="needs every layer of the residual stream"):
        gf.rerun(some, gf.Ablate("decoder.2.self", head=0))


def test_generation_keeps_the_selected_layers() -> None:
    model = letter_model("decoder", n_layers=4)
    with watch(model, residual=True, layers=[1], budget=0) as trace:
        gf.generate(model, "abc", temperature=0, max_new_tokens=5)
    with torch.no_grad(), watch(model, residual=True) as whole:
        model(trace.run.texts["tokens"].tokens)
    assert trace.residual().borders[1:] == [
        "decoder.0",
        "decoder.1.self",
        "decoder.1.mlp",
        "decoder.2-3",
    ]
    assert_close(trace.residual().end, whole.residual().end, 1e-5)


def test_a_changed_run_keeps_the_selected_layers() -> None:
    model, edit = letter_model("decoder", n_layers=4), gf.Ablate("decoder.2.self", head=0)
    tokens = torch.tensor([[3, 4, 5]])
    ends = []
    for layers in ([1], None):
        with torch.no_grad(), gf.change(model, edit, residual=True, layers=layers) as trace:
            model(tokens)
        ends.append(trace.residual().end)
    assert torch.equal(*ends)


def test_a_budget_spills_to_disk(tmp_path: Path) -> None:
    model, tokens = tiny("llama"), torch.arange(3, 12)[None]
    with torch.no_grad(), watch(model, residual=True, budget=0, folder=tmp_path) as trace:
        model(tokens)
    with torch.no_grad(), watch(model, residual=True) as plain:
        model(tokens)
    assert torch.equal(trace.residual().end, plain.residual().end)


@pytest.mark.parametrize("name", ["bert", "gpt-neox", "granite"])
def test_a_stream_is_saved_and_loaded(name: str, tmp_path: Path) -> None:
    model = build(name)
    given = inputs(model, "text")
    with torch.no_grad(), watch(model, residual=True) as trace:
        model(**given)
    trace.save(tmp_path / "a.trace")
    loaded = Trace.load(tmp_path / "a.trace").residual()
    stream = trace.residual()
    assert loaded.borders == stream.borders and loaded.text == stream.text
    for (_, ours), (_, theirs) in zip(loaded.states(), stream.states(), strict=True):
        assert torch.equal(ours, theirs)
    with pytest.raises(TraceError, match="read from a file"):
        gf.logit_lens(Trace.load(tmp_path / "a.trace"))


class _Changed(nn.Module):
    """A block of a tiny Llama, and something that is no addition."""

    def __init__(self, block: nn.Module, change) -> None:
        super().__init__()
        self.block, self.change = block, change

    def forward(self, x, *args, **options):
        return self.change(self.block(x, *args, **options))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (torch.tanh, "its output is not its input plus what its parts add"),
        (lambda x: x.mul_(2), "mul_ overwrites the residual stream"),
        (lambda x: x.index_fill(1, torch.tensor([0]), 0.0), "its output is not its input"),
    ],
)
def test_what_is_no_addition_is_refused(change, reason: str) -> None:
    model, tokens = tiny("llama"), torch.arange(3, 9)[None]
    model.model.layers[1] = _Changed(model.model.layers[1], change)
    with torch.no_grad():
        plain = model(tokens).logits
        with watch(model, residual=True) as trace:
            assert torch.equal(model(tokens).logits, plain)
    assert reason in trace.run.refusals["decoder.stream"]
    with pytest.raises(TraceError, match="stream of decoder could not be recorded: "):
        trace.residual()
    assert trace["decoder.0.self"].weights().shape[-1] == 6  # attention is seen all the same


def test_changes_between_blocks_are_refused() -> None:
    model, tokens = tiny("llama"), torch.arange(3, 9)[None]

    def double(_module, args, options):
        return (args[0] * 2, *args[1:]), options

    model.model.layers[1].register_forward_pre_hook(double, with_kwargs=True)
    with torch.no_grad(), watch(model, residual=True) as trace:
        model(tokens)
    assert "between blocks 0 and 1" in trace.run.refusals["decoder.stream"]


def test_a_stream_that_begins_later_is_refused() -> None:
    model, tokens = tiny("llama"), torch.arange(3, 9)[None]
    embedded = model.get_input_embeddings()(tokens)
    positions = torch.arange(6)[None]
    model.model.layers[0].forward = None  # not called below
    with torch.no_grad(), watch(model, residual=True) as trace:
        model.model.layers = model.model.layers[1:]
        model(inputs_embeds=embedded, position_ids=positions)
    assert trace.run.refusals["decoder.stream"] == "its first block did not run"


def test_additions_in_place_are_followed() -> None:
    model, tokens = tiny("llama"), torch.arange(3, 9)[None]
    model.model.layers[1] = _Changed(
        model.model.layers[1], lambda x: x.__iadd__(torch.ones_like(x))
    )
    with torch.no_grad():
        plain = model(tokens).logits
        with watch(model, residual=True) as trace:
            assert torch.equal(model(tokens).logits, plain)
    stream = trace.residual()
    assert stream.parts[-1].name == "decoder.1.mlp.2"
    assert torch.equal(stream.parts[-1].value, torch.ones_like(stream.start))


def test_a_fault_costs_the_stream_and_not_the_answer(monkeypatch) -> None:
    model, tokens = tiny("llama"), torch.arange(3, 9)[None]
    plain = model(tokens).logits

    def fail(*_: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr("glassformer.tracing.stream_graph.StreamGraph._follow", fail)
    with pytest.warns(RecordingWarning, match="KeyError"), watch(model, residual=True) as trace:
        assert torch.equal(model(tokens).logits, plain)
    assert not trace.run.streams
    assert torch.equal(model(tokens).logits, plain)


def test_modules_of_pytorch_are_refused() -> None:
    model = nn.TransformerEncoderLayer(12, 2, 20)
    needed = "residual=True needs a model of glassformer or"
    with pytest.raises(TraceError, match=needed), watch(model, residual=True):
        model(torch.zeros(2, 3, 12))


def test_contexts_are_nested_and_modes_are_left_in_order() -> None:
    from torch.overrides import _get_current_function_mode_stack

    model, tokens = build("llama"), torch.arange(3, 9)[None]
    with torch.no_grad():
        plain = model(tokens).logits
        with watch(model, residual=True) as outer, watch(model, residual=True) as inner:
            assert torch.equal(model(tokens).logits, plain)
    assert not _get_current_function_mode_stack()
    for trace in (outer, inner):
        assert not trace.run.refusals
        stream = trace.residual()
        assert torch.equal(stream.readout(stream.end), plain)


@pytest.mark.parametrize("where", ["block", "head"])
def test_a_failing_model_leaves_nothing_behind(where: str) -> None:
    from torch.overrides import _get_current_function_mode_stack

    model, tokens = tiny("llama"), torch.arange(3, 9)[None]

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    module = model.model.layers[1].mlp if where == "block" else model.lm_head
    handle = module.register_forward_hook(fail)
    with pytest.raises(ZeroDivisionError), watch(model, residual=True):
        model(tokens)
    assert not _get_current_function_mode_stack()
    handle.remove()
    with torch.no_grad(), watch(model, residual=True) as trace:
        logits = model(tokens).logits
    assert torch.equal(trace.residual().readout(trace.residual().end), logits)


@pytest.mark.parametrize("how", ["inference", "bfloat16", "autocast", "training"])
def test_other_ways_to_run(how: str) -> None:
    model, tokens = build("gpt2"), torch.arange(3, 9)[None]
    if how == "bfloat16":
        model = model.bfloat16()
    if how == "training":
        model = model.train()
        for part in model.modules():
            if isinstance(part, nn.Dropout):
                part.p = 0.3
    context = {
        "inference": torch.inference_mode(),
        "autocast": torch.autocast("cpu", torch.bfloat16),
    }.get(how, torch.enable_grad())
    with context:
        torch.manual_seed(5)
        plain = model(tokens).logits
        torch.manual_seed(5)
        with watch(model, residual=True) as trace:
            assert torch.equal(model(tokens).logits, plain)
    assert not trace.run.refusals
    stream = trace.residual()
    total = torch.stack(list(stream.shares().values())).sum(0)
    is_coarse = how in ("bfloat16", "autocast")
    assert_close(total, stream.end[0, -1].double(), 0.1 if is_coarse else 1e-5)


def test_without_residual_there_is_none() -> None:
    model = tiny("llama")
    with watch(model) as trace:
        model(torch.arange(3, 9)[None])
    with pytest.raises(TraceError, match=r"gf.watch\(model, residual=True\)"):
        trace.residual()


def test_names_are_checked() -> None:
    model = load("reader")
    with watch(model, residual=True) as trace:
        gf.embed(model, ["The cat sat."])
    stream = trace.residual()
    with pytest.raises(TraceError, match=r"A border must be one of encoder\.start"):
        stream.after("encoder.0.attention")
    with pytest.raises(TraceError, match="A part of the stream must be one of encoder"):
        stream.part("encoder.start")
    with pytest.raises(TraceError, match="The streams of this run are encoder; got 'decoder'"):
        trace.residual("decoder")
