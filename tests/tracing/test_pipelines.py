"""Pipelines: each rank records its own layers, and the folder opens as the whole trace."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn

from closeness import assert_close
from glassformer.errors import InterventionError, RecordingWarning, TraceError
from glassformer.tracing import Ablate, Run, Trace, change, record, stages, watch
from glassformer.tracing.files import load_trace
from glassformer.tracing.sources import transformers as source
from glassformer.tracing.trace import TracedText
from tracing import pipeline_run
from tracing.pipeline_run import N_BATCHES, N_LAYERS, CutModel, Stage, build_model, own_layers
from tracing.test_head_shards import launch

SCRIPT = Path(pipeline_run.__file__)


@pytest.mark.plain
def test_two_stages(tmp_path: Path) -> None:
    launch(tmp_path, "numbered", "counted", "cut", "exported", "training", n_ranks=2, script=SCRIPT)
    whole = pipeline_run.trace_whole()
    for name in ("numbered", "counted", "first", "cut", "training"):
        check_trace(tmp_path / f"{name}.trace", whole)
    check_attention(tmp_path / "exported.trace", whole)
    check_own_layers(tmp_path / "numbered.trace", n_stages=2)
    chosen = Trace.load(tmp_path / "chosen.trace")
    assert chosen.names == ["decoder.1.self"] and chosen["decoder.1.self"].rows == (10,)
    expected = whole["decoder.1.self"].weights(head=5)[-1:]
    assert_close(chosen["decoder.1.self"].weights(head=5), expected, 1e-5)
    with pytest.raises(TraceError, match=r"all of its 2 layers .*; rank 0 has 0 1, rank 1 has 0 1"):
        Trace.load(tmp_path / "overlaid.trace")


@pytest.mark.plain
def test_four_stages(tmp_path: Path) -> None:
    launch(tmp_path, "numbered", "counted", "exported", "both", n_ranks=4, script=SCRIPT)
    whole = pipeline_run.trace_whole()
    for name in ("numbered", "counted", "first", "both"):
        check_trace(tmp_path / f"{name}.trace", whole)
    check_attention(tmp_path / "exported.trace", whole)
    check_own_layers(tmp_path / "numbered.trace", n_stages=4)
    with pytest.raises(TraceError, match=r"rank 2 has 0, rank 3 has 0\. Watch every stage"):
        Trace.load(tmp_path / "overlaid.trace")


@pytest.mark.plain
def test_two_stages_on_each_rank(tmp_path: Path) -> None:
    launch(tmp_path, "interleaved", n_ranks=2, script=SCRIPT)
    check_trace(tmp_path / "interleaved.trace", pipeline_run.trace_whole())
    check_own_layers(tmp_path / "interleaved.trace", n_stages=4, n_ranks=2)
    with pytest.raises(TraceError, match=r"all of its 4 layers .*; rank 0 has 0, rank 1 has 1\."):
        Trace.load(tmp_path / "incomplete.trace")


def check_attention(folder: Path, whole: Trace) -> Trace:
    """The parts of all ranks are the trace of one process: a run for each micro-batch."""
    found = Trace.load(folder)
    assert len(found.runs) == len(whole.runs) == N_BATCHES
    for i in range(N_BATCHES):
        ours, theirs = found.only(i), whole.only(i)
        assert ours.names == theirs.names == [f"decoder.{n}.self" for n in range(N_LAYERS)]
        assert ours.labels(sequence=1) == theirs.labels(sequence=1)
        assert not ours.run.refusals
        for name in theirs.names:
            assert ours[name].heads is None and ours[name].queries == "tokens"
            for operand in ("q", "out"):
                a, b = getattr(ours[name], operand), getattr(theirs[name], operand)
                assert_close(a, b, 1e-5)
            assert_close(ours[name].weights(), theirs[name].weights(), 1e-5)
    return found


def check_trace(folder: Path, whole: Trace) -> None:
    """Keys and values too, and the residual stream through all stages."""
    found = check_attention(folder, whole)
    assert "stage" not in found.model
    for i in range(N_BATCHES):
        ours, theirs = found.only(i), whole.only(i)
        for name in theirs.names:
            assert_close(ours[name].k, theirs[name].k, 1e-5)
            assert_close(ours[name].v, theirs[name].v, 1e-5)
        assert ours.residual().borders == theirs.residual().borders
        for border in theirs.residual().borders:
            assert_close(ours.residual().after(border), theirs.residual().after(border), 1e-4)


def check_own_layers(folder: Path, n_stages: int, n_ranks: int | None = None) -> None:
    """No rank's file holds a layer of another one, nor of another stage of its own."""
    n_ranks = n_ranks or n_stages
    for stage in range(n_stages):
        layers = list(own_layers(stage, n_stages))
        name = f"rank-{stage % n_ranks}-of-{n_ranks}-layer-{layers[0]}.trace"
        part = load_trace(folder / name)
        assert part.model["stage"] == layers
        for run in part.runs:
            assert {int(name.split(".")[1]) for name in run.sites} == set(layers)
    assert len(list(folder.iterdir())) == n_stages


def part(rank: int, layers: list[int], tokens: torch.Tensor, **model: Any) -> Trace:
    """What a rank would have saved that has these layers."""
    sites = {}
    for layer in layers:
        q, k, v = torch.randn(3, 1, 2, 5, 4).unbind(0)
        site = record(q, k, v, name=f"decoder.{layer}.self")
        site.queries = site.keys = "tokens"
        sites[site.name] = site
    text = {"tokens": TracedText(tokens, [])}
    return Trace([Run(sites, text)], {"stage": layers, **model})


def save_parts(folder: Path, *parts: Trace) -> Trace:
    for rank, each in enumerate(parts):
        each.part = (rank, len(parts))
        each.save(folder)
    return Trace.load(folder)


A, B, PLACES = torch.arange(5)[None] + 7, torch.arange(5)[None] + 9, torch.arange(5)[None]


def test_replicas_of_a_pipeline_are_runs_after_each_other(tmp_path: Path) -> None:
    first = [part(0, [0, 1], A), part(1, [2, 3], PLACES)]
    second = [part(2, [0, 1], B), part(3, [2, 3], PLACES)]
    found = save_parts(tmp_path / "run.trace", *first, *second)
    assert [run.texts["tokens"].tokens.tolist() for run in found.runs] == [A.tolist(), B.tolist()]
    for run, ranks in zip(found.runs, (first, second), strict=True):
        assert list(run.sites) == [f"decoder.{n}.self" for n in range(4)]
        assert torch.equal(run.sites["decoder.3.self"].q, ranks[1]["decoder.3.self"].q)


@pytest.mark.plain
def test_stages_that_do_not_fit(tmp_path: Path) -> None:
    config = {"config": {"num_hidden_layers": 4}}
    with pytest.raises(
        TraceError, match=r"its 4 layers .* rank 0 has 0 1, rank 1 has 0 1\. .*first_"
    ):
        save_parts(tmp_path / "a", part(0, [0, 1], A, **config), part(1, [0, 1], PLACES, **config))
    with pytest.raises(TraceError, match=r"its 4 layers .* rank 0 has 0 1, rank 1 has 3"):
        save_parts(tmp_path / "b", part(0, [0, 1], A), part(1, [3], PLACES))
    embedded = torch.full_like(A, -1)
    with pytest.raises(TraceError, match=r"its 2 layers .* rank 0 has 0 1, rank 1 has 0 1"):
        save_parts(tmp_path / "c", part(0, [0, 1], A), part(1, [0, 1], embedded))
    longer = part(0, [0, 1], A)
    longer.recorded *= 2
    with pytest.raises(TraceError, match="for as many passes"):
        save_parts(tmp_path / "d", longer, part(1, [2, 3], PLACES))
    with pytest.raises(TraceError, match="must name its layers by numbers; it has"):
        save_parts(tmp_path / "e", part(0, ["x"], A), part(1, [1], PLACES))  # pyright: ignore


def test_layers_by_themselves_are_watched() -> None:
    """In one process a stage is a part of nothing; its layers keep the numbers of its paths."""
    model = build_model()
    with watch(model) as whole, torch.no_grad():
        model(pipeline_run.tokens())
    for keeps_numbers, names in ((True, (2, 3)), (False, (0, 1))):
        stage = Stage(model, range(2, 4), keeps_numbers=keeps_numbers).eval()
        h = model.model.embed_tokens(pipeline_run.tokens())
        with watch(stage) as trace, torch.no_grad():
            stage(h)
        assert trace.names == [f"decoder.{n}.self" for n in names] and trace.part is None
    first = Stage(model, range(2), keeps_numbers=False).eval()
    with watch(first, first_layer=0) as trace, torch.no_grad():
        first(pipeline_run.tokens())
    assert_close(trace["decoder.1.self"].weights(), whole["decoder.1.self"].weights(), 1e-5)
    assert trace.labels() == whole.labels()


@pytest.mark.plain
def test_stages_in_a_list_are_refused() -> None:
    model = build_model()
    stages = [Stage(model, range(n, n + 1), keeps_numbers=True) for n in (0, 2)]
    message = "a module that is called; got ModuleList, which only holds 2. Watch each by itself"
    with pytest.raises(TraceError, match=message), watch(nn.ModuleList(stages)):
        pass


@pytest.mark.plain
def test_where_first_layer_makes_no_sense() -> None:
    encoder = nn.TransformerEncoderLayer(8, 2, batch_first=True)
    message = "first_layer=2 numbers the layers of a model of transformers; Tran"
    with pytest.raises(TraceError, match=message), watch(encoder, first_layer=2):
        pass
    message = r"0 or more, .* got first_layer=-1 for a module with 1\."
    with pytest.raises(TraceError, match=message), watch(build_model(), first_layer=-1):
        pass
    sizes: dict[str, Any] = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2}
    t5 = transformers.T5Model(transformers.T5Config(vocab_size=9, **sizes))
    message = "got first_layer=1 for a module with 2"
    with pytest.raises(TraceError, match=message), watch(t5, first_layer=1):
        pass


@pytest.fixture
def second_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this were rank 1 of a group."""
    for module in (stages, source):
        monkeypatch.setattr(module, "find_rank", lambda: (1, 2))


@pytest.mark.usefixtures("second_of_two")
def test_which_modules_are_stages() -> None:
    last, first = CutModel(range(2, 4)).eval(), CutModel(range(2)).eval()
    h = torch.randn(1, 5, 32)
    with watch(last) as trace, torch.no_grad():
        last(h)
    assert trace.names == ["decoder.2.self", "decoder.3.self"]
    assert trace.part == (1, 2) and trace.model["stage"] == [2, 3]
    first.model.config.num_hidden_layers = 2  # only the missing norm shows it
    with watch(first) as trace, torch.no_grad():
        first(pipeline_run.tokens())
    assert trace.part == (1, 2) and trace.model["stage"] == [0, 1]
    model = build_model()
    with watch(model) as trace, torch.no_grad():  # a replica
        model(pipeline_run.tokens())
    assert trace.part is None and "stage" not in trace.model


@pytest.mark.plain
@pytest.mark.usefixtures("second_of_two")
def test_stages_are_not_changed() -> None:
    stage = CutModel(range(2, 4)).eval()
    with (
        pytest.warns(RecordingWarning, match="is a stage of a pipeline"),
        pytest.raises(InterventionError, match="stage of a pipeline, and changes need the whole"),
        change(stage, Ablate("decoder.2.self")),
    ):
        pass
