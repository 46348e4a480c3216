"""`watch`: any model, recorded while it runs.

The frame of every recording: attach, let the model run, undo, assemble, warn once. Whatever the
recorder does in here is guarded: the model is as it was when the context is left, also if the body
has failed, and the body's own error is raised unchanged.
"""

import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from glassformer.errors import (
    GlassformerError,
    InterventionError,
    RecordingWarning,
    TraceError,
)
from glassformer.tracing.compilation import find_compiled, switch_compiling_off
from glassformer.tracing.engines.engine import Engine
from glassformer.tracing.guard import Guard, enumerate_some
from glassformer.tracing.interventions.editor import Editor
from glassformer.tracing.interventions.positions import attach_positions
from glassformer.tracing.interventions.stream_editor import Shortcuts, StreamEditor
from glassformer.tracing.interventions.values import Changes, Intervention
from glassformer.tracing.model_lookup import OURS, ModuleTree, find_model
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.recorder import Recorder, Source
from glassformer.tracing.selection import Rows, Selection
from glassformer.tracing.sources.ours import OurSource
from glassformer.tracing.sources.torch_modules import TorchSource
from glassformer.tracing.stream_listener import StreamListener
from glassformer.tracing.trace import Run, Trace


@contextmanager
def watch(
    model: nn.Module | Engine,
    tokenizer: Any = None,
    *,
    layers: Collection[int] | None = None,
    heads: Collection[int] | None = None,
    rows: Rows | None = None,
    every: int = 1,
    outputs: bool = False,
    residual: bool = False,
    device: torch.device | str | None = None,
    budget: int | str | None = None,
    folder: str | Path | None = None,
    requests: Literal["all", "asking"] = "all",
    first_layer: int | None = None,
) -> Iterator[Trace]:
    """Record the operands of a model's attention while the context is open.

    ::

        with gf.watch(model, tokenizer) as trace:
            model.generate(**tokenizer("The cat sat on the", return_tensors="pt"))
        trace["decoder.3.self"].weights(head=2)

    The model is one of transformers, of glassformer, or a module with `nn.MultiheadAttention`, by
    itself or inside another module. Only the passes of this thread are recorded. A model may be
    watched more than once at a time; compiled parts run uncompiled meanwhile. `tokenizer` labels
    the tokens; models of ours bring their own.

    It may also be a `vllm.LLM`: each request that it serves meanwhile becomes a run of the trace.
    `rows="last"` then keeps the rows from which tokens are sampled, however prompts are cut.
    `requests="asking"` keeps those alone whose sampling parameters ask for it.

    `layers` and `heads` select some of them, `rows` some of the queries: positions in the text, or
    "last" for the last row of each call. `every=n` keeps each n-th step of generation. `outputs`
    also keeps what the model computed, `residual` the residual stream and what each part of each
    block adds to it: `trace.residual()`, where adjacent layers that are not selected count as one
    part. `device` moves all this, to "cpu" for instance; what exceeds the budget ("4 GiB") goes to
    disk, into `folder` or the system's temporary folder.

    Under `torchrun` it may be a shard or a stage of a model, on every rank: `trace.save` then
    writes a folder, which opens as one trace. `first_layer` is the number of the first layer of a
    stage that counts its layers from 0, where they do not know their numbers themselves.

    What cannot be recorded never costs the model's output: the site is refused, and a
    `RecordingWarning` gives the reason when the context is left.

    >>> import glassformer as gf
    >>> model = gf.load("translator")
    >>> with gf.watch(model) as trace:
    ...     gf.translate(model, "The cat sat.", to="fr")
    "Le chat s'assit."
    >>> trace["decoder.1.cross"].weights(head=1).shape
    torch.Size([9, 6])
    """
    selection = Selection(layers=layers, heads=heads, rows=rows, every=every)
    if not isinstance(model, nn.Module) and isinstance(model, Engine):
        if residual:
            raise TraceError("residual=True needs a model; an engine gives its attention alone.")
        if first_layer is not None:
            raise TraceError(f"first_layer={first_layer} needs a model; an engine has all layers.")
        # Imported here: an engine's side has files of its own, which only those with one need.
        from glassformer.tracing.engines.vllm.watching import watch_engine

        where = {"device": device, "budget": budget, "folder": folder, "requests": requests}
        with watch_engine(model, tokenizer, selection=selection, outputs=outputs, **where) as trace:
            yield trace
        return
    if requests != "all":
        raise TraceError(f'requests="{requests}" needs an engine; a model has no requests.')
    recorder, tree = prepare(
        "watch",
        model,
        tokenizer,
        selection=selection,
        store=OperandStore(device, budget, folder),
        outputs=outputs,
        residual=residual,
        first_layer=first_layer,
    )
    with attach(recorder, tree) as trace:
        yield trace


@contextmanager
def change(
    model: nn.Module,
    changes: Intervention | Changes | Collection[Intervention],
    tokenizer: Any = None,
    *,
    layers: Collection[int] | None = None,
    heads: Collection[int] | None = None,
    rows: Rows | None = None,
    every: int = 1,
    outputs: bool = False,
    residual: bool = False,
    device: torch.device | str | None = None,
    budget: int | str | None = None,
    folder: str | Path | None = None,
) -> Iterator[Trace]:
    """Change what a model computes while the context is open, and record the changed run.

    ::

        with gf.change(model, gf.Ablate("decoder.3.self", head=2) & gf.Skip("decoder.5")) as trace:
            model.generate(**inputs)

    Interventions are applied to every pass of this thread, each step of generation included;
    positions count from the beginning of the text. The options are those of `gf.watch`. Attention
    runs on the kernels that it would have run on; only rows whose weights change are computed
    again. An intervention that cannot be applied is an error, and the model is restored always.

    >>> import glassformer as gf
    >>> model = gf.load("translator")
    >>> with gf.change(model, gf.Ablate("decoder.1.cross") & gf.Ablate("decoder.3.cross")):
    ...     gf.translate(model, "The cat sat.", to="fr") == "Le chat s'assit."
    False
    """
    recorder, tree = prepare(
        "change",
        model,
        tokenizer,
        selection=Selection(layers=layers, heads=heads, rows=rows, every=every),
        store=OperandStore(device, budget, folder),
        outputs=outputs,
        residual=residual,
        editor=Editor(Changes.of(changes)),
    )
    with attach(recorder, tree) as trace:
        yield trace


def prepare(
    verb: str,
    model: nn.Module,
    tokenizer: Any,
    *,
    selection: Selection,
    store: OperandStore,
    outputs: bool,
    residual: bool,
    editor: Editor | None = None,
    first_layer: int | None = None,
) -> tuple[Recorder, ModuleTree]:
    """A recorder for this model, and its modules."""
    if not isinstance(model, nn.Module):
        raise TraceError(f"{verb} takes a model, a torch.nn.Module; got {type(model).__name__}.")
    tree = ModuleTree(model)
    found, source = _choose_source(tree, first_layer)
    if (residual or editor is not None) and isinstance(source, TorchSource):
        needed = "gf.change" if editor is not None else "residual=True"
        raise TraceError(
            f"{needed} needs a model of glassformer or transformers; this one has attention "
            "modules of PyTorch. Watch it without."
        )
    name = type(found).__name__
    recorder = Recorder(name, source, selection, store, tokenizer=tokenizer, outputs=outputs)
    recorder.guard.verb = f"gf.{verb}"
    recorder.residual, recorder.editor = residual, editor
    return recorder, tree


def _choose_source(tree: ModuleTree, first_layer: int | None) -> tuple[nn.Module, Source]:
    """The model, and the source that knows its kind."""
    model = find_model(tree)
    if first_layer is not None and (model is None or isinstance(model, OURS)):
        raise TraceError(
            f"first_layer={first_layer} numbers the layers of a model of transformers; "
            f"{type(tree.model).__name__} is none. Watch it without."
        )
    if model is None:
        return tree.model, TorchSource(tree)
    if isinstance(model, OURS):
        return model, OurSource(tree.of(model))
    # Importing transformers takes seconds: only those who have a model of theirs pay for it.
    from glassformer.tracing.sources.transformers import TransformersSource

    return model, TransformersSource(tree.of(model), first_layer)


@contextmanager
def attach(
    recorder: Recorder,
    tree: ModuleTree,
    shortcuts: Shortcuts | None = None,
) -> Iterator[Trace]:
    """Record until the context is left; then undo everything and warn once of what failed."""
    guard, undo = recorder.guard, recorder.undo
    catch = partial(guard.catch, recorder.name, recorder.refuse_all)
    with catch(raising=(GlassformerError,)):
        recorder.source.check(recorder)
    is_failing = True
    try:
        compiled: list[str] = []
        with catch():
            compiled = find_compiled(tree)
        if compiled:
            note = f"{enumerate_some(compiled)} compiled, but run uncompiled while recorded"
            recorder.trace.model["note"] = note
            warnings.warn(f"{guard.verb}: {note}.", RecordingWarning, stacklevel=5)
        with catch():
            if compiled:
                undo.append(switch_compiling_off())
            recorder.source.attach(recorder, undo)
            if recorder.residual and recorder.editor is None:
                StreamListener(recorder.source.tree, recorder).attach(undo)
        if recorder.editor is not None:
            _attach_editor(recorder, recorder.editor, shortcuts, undo)
        yield recorder.trace
        if recorder.editor is not None and recorder.n_passes:
            recorder.editor.check_applied()
        is_failing = False
    finally:
        for each in reversed(undo):
            with catch():
                each()
        with catch():
            recorder.finish()
        recorder.trace.assemble = None  # a trace must not keep the model in memory
        with catch():
            recorder.close()
        _refuse_rest(recorder.trace.recorded, guard)
        guard.warn(is_failing=is_failing)


def _attach_editor(
    recorder: Recorder,
    editor: Editor,
    shortcuts: Shortcuts | None,
    undo: list[Callable[[], None]],
) -> None:
    """Errors are raised here: a model that is not changed as asked must not run."""
    if recorder.layout is None:
        reasons = list(recorder.guard.faults.values())
        raise InterventionError(f"The model cannot be changed: {'; '.join(reasons)}.")
    recorder.trace.model["changes"] = str(editor.changes)
    streams = StreamEditor(recorder.source.tree, recorder, editor, shortcuts)
    streams.check()
    streams.attach(undo)
    attach_positions(recorder, editor, undo)


def _refuse_rest(runs: list[Run], guard: Guard) -> None:
    """Faults that the recorder could not refuse any more: each needs its reason in the trace."""
    reasons = {reason for run in runs for reason in run.refusals.values()}
    rest = {name: why for name, why in guard.faults.items() if why not in reasons}
    if rest and not runs:
        runs.append(Run())
    if rest:
        runs[-1].refusals |= rest
