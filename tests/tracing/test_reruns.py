"""Reruns: from a trace, only the layers above a change run again, with the same bits."""

import gc
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import glassformer as gf
from closeness import assert_close
from glassformer.errors import InterventionError, TraceError
from glassformer.models.config import Norms
from glassformer.tracing.interventions.values import Changes, Intervention
from letter_models import letter_model
from tracing.watched_architectures import ARCHITECTURES, NOT_THERE, built, inputs

REFUSED = {"mobilebert", "gemma3n", "swin"}  # their stream is not followed
ROUNDED = {"deberta"}  # its norm is not PyTorch's, and rounds at other places
OURS = {
    "decoder": lambda: letter_model("decoder", n_layers=3),
    "post-norm": lambda: letter_model("decoder", n_layers=3, norms=Norms(place="post")),
    "encoder": lambda: letter_model("encoder", n_layers=3),
    "encoder-decoder": lambda: letter_model("encoder_decoder", n_layers=3),
}
THEIRS = ["gpt2", "gpt-neox", "llama", "gemma2", "opt", "t5", "bart", "bert", "mixtral"]


def build(name: str) -> nn.Module:
    if name in OURS:
        return OURS[name]()
    try:
        return built(name, "sdpa")
    except ValueError as error:
        assert NOT_THERE in str(error)
        return built(name, "eager")


def read(model: nn.Module, name: str, seed: int = 0) -> tuple[tuple, dict[str, Any]]:
    if name not in OURS:
        given = inputs(model, ARCHITECTURES[name].reads)
        turned = {n: t.flip(1) if seed and "ids" in n else t for n, t in given.items()}
        return (), turned
    generator = torch.Generator().manual_seed(seed)
    source, tokens = torch.randint(4, 30, (2, 2, 7), generator=generator)
    return ((source, tokens) if name == "encoder-decoder" else (tokens,)), {}


def first(out: Any) -> Tensor:
    """The scores or states of a model's output."""
    if isinstance(out, Tensor):
        return out
    found = getattr(out, "logits", None)
    return found if isinstance(found, Tensor) else out[0]


def every_intervention(trace: gf.Trace, other: gf.Trace) -> list[Intervention]:
    """All of them at the last site, one at the first."""
    start, site = trace.names[0], trace.names[-1]
    stream = trace.residual(site.partition(".")[0])
    vector = torch.randn(stream.start.shape[-1], generator=torch.Generator().manual_seed(0))
    states = [part.name for part in stream.parts if part.layer == stream.parts[-1].layer]
    return [
        gf.Ablate(start, head=1),
        gf.Ablate(site, head=1),
        gf.Ablate(site, how="mean"),
        gf.Ablate(site, head=0, how="resample"),
        gf.Knockout(site, queries=-1, keys=-2),
        gf.Patch(site, other, head=0, positions=[1]),
        gf.Patch(site, other),
        gf.Patch(states[-1], other, what="state", positions=2),
        gf.Scale(site, 0.3),
        gf.Freeze(site, other),
        gf.Swap(site, scale=0.1),
        gf.Steer(states[-1], vector),
        gf.Skip(site.rpartition(".")[0]),
    ]


@pytest.mark.parametrize("name", [*OURS, *THEIRS])
def test_a_rerun_is_the_whole_run_to_the_bit(name: str) -> None:
    model = build(name)
    args, options = read(model, name)
    with torch.no_grad():
        with gf.watch(model, residual=True) as trace:
            plain = first(model(*args, **options))
        again, more = read(model, name, seed=1)
        with gf.watch(model, residual=True) as other:
            model(*again, **more)
    for change in every_intervention(trace, other):
        with torch.no_grad(), gf.change(model, change, residual=True) as whole:
            changed = first(model(*args, **options))
        rerun = gf.rerun(trace, change)
        assert not torch.equal(changed, plain), f"{change} has no effect"
        for stack, stream in rerun.run.streams.items():
            assert torch.equal(stream.end, whole.run.streams[stack].end), f"{change} {stack}"
            assert stream.borders == whole.run.streams[stack].borders
        assert rerun.names == whole.names
        if trace.residual().readout is not None and name != "encoder":  # which returns states
            assert torch.equal(rerun.logits(), changed), str(change)
    with torch.no_grad():
        assert torch.equal(first(model(*args, **options)), plain)


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name not in REFUSED])
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # theirs
def test_every_architecture_can_be_changed_and_rerun(name: str) -> None:
    model = build(name)
    args, options = read(model, name)
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        plain = first(model(*args, **options))
    for stack, stream in trace.run.streams.items():
        last = stream.parts[-1]
        with torch.no_grad(), gf.change(model, gf.Patch(last.name, trace, what="state")):
            assert_close(first(model(*args, **options)), plain, 1e-5)
        sites = [p.site for p in stream.parts if p.site in trace.run.sites]
        change = Changes.of([gf.Ablate(last.name)])
        if sites and sites[-1] is not None and sites[-1] != last.name:
            change = change & gf.Ablate(sites[-1], head=0)
        with torch.no_grad(), gf.change(model, change, residual=True) as whole:
            assert not torch.equal(first(model(*args, **options)), plain), f"{change} has no effect"
        end, expected = gf.rerun(trace, change).run.streams[stack].end, whole.run.streams[stack].end
        if name in ROUNDED:
            assert_close(end, expected, 1e-4)
        else:
            assert torch.equal(end, expected), str(change)
    with torch.no_grad():
        assert torch.equal(first(model(*args, **options)), plain)


def test_only_the_layers_above_a_change_run() -> None:
    model = build("llama")
    args, options = read(model, "llama")
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(*args, **options)
    ran: list[int] = []
    for i, block in enumerate(model.model.layers):  # type: ignore[union-attr]
        block.mlp.register_forward_hook(lambda *_, i=i: ran.append(i))
    gf.rerun(trace, gf.Ablate("decoder.1.self", head=1))
    assert ran == [1]


def test_an_unchanged_encoder_does_not_run_again() -> None:
    model = build("encoder-decoder")
    args, _ = read(model, "encoder-decoder")
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(*args)
    ran: list[nn.Module] = []
    for block in model.encoder.blocks:  # type: ignore[union-attr]
        block.feed_forward.register_forward_hook(lambda module, *_: ran.append(module))
    changed = gf.rerun(trace, gf.Ablate("decoder.1.cross"))
    assert not ran and changed.names == trace.names
    assert torch.equal(changed.residual("encoder").end, trace.residual("encoder").end)
    gf.rerun(trace, gf.Ablate("encoder.2.self"))
    assert set(ran) == {model.encoder.blocks[2].feed_forward}  # type: ignore[union-attr]


def test_a_generated_text_is_read_at_once() -> None:
    model = gf.load("translator")
    with gf.watch(model, residual=True) as trace:
        gf.translate(model, "The cat sat on the mat.", to="fr", beams=1)
    source, tokens = (trace.run.texts[n].tokens for n in ("source", "tokens"))
    change = gf.Ablate("decoder.2.cross", head=1)
    with torch.no_grad(), gf.change(model, change):
        expected = model(source, tokens)
    assert_close(gf.rerun(trace, change).logits(), expected, 1e-4)


def test_attribution_reads_a_changed_stream() -> None:
    model = build("llama")
    args, options = read(model, "llama")
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(*args, **options)
    vector = torch.randn(24, generator=torch.Generator().manual_seed(0))
    changed = gf.rerun(trace, gf.Steer("decoder.0.mlp", vector))
    found = gf.attribute(changed, 5)
    assert "decoder.0.mlp.change" in [share.name for share in found.shares]
    assert abs(found.logit - float(changed.logits()[0, -1, 5])) < 1e-4


def test_what_cannot_be_rerun_is_refused(tmp_path: Path) -> None:
    model = build("llama")
    args, options = read(model, "llama")
    change = gf.Ablate("decoder.1.mlp")
    with torch.no_grad():
        with gf.watch(model) as bare:
            model(*args, **options)
        with gf.watch(model, residual=True, rows=[1]) as some:
            model(*args, **options)
        with gf.watch(model, residual=True) as trace:
            model(*args, **options)
    trace.save(tmp_path / "a.trace")
    for given, kind, said in (
        (bare, TraceError, "holds no residual stream"),
        (some, InterventionError, "needs every row"),
        (gf.Trace.load(tmp_path / "a.trace"), InterventionError, "was read from a file"),
        (gf.rerun(trace, change), InterventionError, "starts from an unchanged run"),
    ):
        with pytest.raises(kind, match=said):
            gf.rerun(given, change)
    with pytest.raises(InterventionError, match="at least one intervention"):
        gf.rerun(trace, [])
    with pytest.raises(InterventionError, match=r"decoder\.0 … decoder\.1"):
        gf.rerun(trace, gf.Skip("decoder.7"))


def test_a_trace_does_not_keep_its_model() -> None:
    def record() -> gf.Trace:
        model = build("decoder")
        with torch.no_grad(), gf.watch(model, residual=True) as trace:
            model(torch.tensor([[4, 5, 6]]))
        return trace

    trace = record()
    gc.collect()
    with pytest.raises(InterventionError, match="no longer exists"):
        gf.rerun(trace, gf.Ablate("decoder.1.mlp"))
