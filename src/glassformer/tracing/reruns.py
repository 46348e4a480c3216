"""`rerun`: a recorded run once more, with something changed; only what lies above is computed.

Blocks below the first change return the state that was recorded instead of computing it. The
model's own code runs everything else, its embedding, masks and positions included, so the result is
that of a whole run, to the bit.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from glassformer.errors import InterventionError
from glassformer.functional import Padding
from glassformer.models import Decoder, Encoder, EncoderDecoder
from glassformer.tracing.context import attach, prepare
from glassformer.tracing.interventions.editor import Editor
from glassformer.tracing.interventions.stream_editor import KnownBlock, KnownBlocks, Shortcuts
from glassformer.tracing.interventions.values import Changes, Intervention
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.selection import Selection
from glassformer.tracing.stream import Part, Stream, Transform
from glassformer.tracing.trace import ModelCall, Run, Trace


def rerun(trace: Trace, changes: Intervention | Changes | Collection[Intervention]) -> Trace:
    """Run the last run of a trace once more, changed: only the layers from the first change on.

    The trace is recorded with residual=True, and its model must still exist. A text that was
    generated is read at once. `logits()` of the trace that is returned are the changed scores.

    >>> import glassformer as gf
    >>> model = gf.load("translator")
    >>> with gf.watch(model, residual=True) as trace:
    ...     _ = gf.translate(model, "The cat sat.", to="fr", beams=1)
    >>> changed = gf.rerun(trace, gf.Ablate("decoder.2.cross"))
    >>> changed.logits().shape == trace.logits().shape
    True
    """
    given = Changes.of(changes)
    if not given:
        raise InterventionError("A rerun needs at least one intervention; got none.")
    run, editor = trace.run, Editor(given)
    trace.residual()  # raises where there is none
    model, args, options = find_call(trace)
    known = find_known_blocks(run, editor.lowest, model)
    tokenizer = next((s.readout.tokenizer for s in run.streams.values() if s.readout), None)
    recorder, tree = prepare(
        "rerun",
        model,
        tokenizer,
        selection=Selection(),
        store=OperandStore(None, None, None),
        outputs=False,
        residual=True,
        editor=editor,
    )
    with torch.no_grad(), attach(recorder, tree, Shortcuts(known)) as changed:
        model(*args, **options)
    _complete(changed, run, known)
    return changed


def find_known_blocks(run: Run, lowest: dict[str, int], model: nn.Module) -> KnownBlocks:
    """The blocks below the first change, and what they returned."""
    device = next(model.parameters()).device
    known: KnownBlocks = {}
    for stack, stream in run.streams.items():
        if stream.rows is not None:
            raise InterventionError(
                "A rerun needs every row of the residual stream; record it without rows=, every=."
            )
        if any(part.kind == "layers" for part in stream.parts):
            raise InterventionError(
                "A rerun needs every layer of the residual stream; record it without layers=."
            )
        stop = lowest.get(stack)
        for layer, state in find_block_ends(stream).items():
            if stop is None or layer < stop:
                known[stack, layer] = KnownBlock(state.to(device), stream.block_output)
        if stop is not None:
            break  # whatever reads this stack has to run as well
    return known


def find_block_ends(stream: Stream) -> dict[int, torch.Tensor]:
    """The state at the end of each block, by layer."""
    last = {part.layer: part.name for part in stream.parts}
    layers = {name: layer for layer, name in last.items()}
    return {layers[name]: state for name, state in stream.states() if name in layers}


def find_call(trace: Trace) -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
    """The model of the last run, and the arguments that run it once more."""
    run = trace.run
    if "changes" in trace.model:
        raise InterventionError(
            f"A rerun starts from an unchanged run; this one was changed by "
            f"{trace.model['changes']}. Join the interventions by &."
        )
    if not run.calls:
        raise InterventionError(
            "A rerun needs the model, and this trace was read from a file. Use gf.change."
        )
    model = run.calls[-1].model()
    if model is None:
        raise InterventionError(
            "The model of this trace no longer exists: a trace does not keep it. Keep it in a "
            "variable for as long as the trace is rerun, or use gf.change."
        )
    if (
        len(run.calls) == 1
        and run.calls[0].args is not None
        and (found := _repeat_call(run.calls[0])) is not None
    ):
        return model, *found
    return model, *_read_at_once(trace, model)


def _repeat_call(call: ModelCall) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The same call, without its cache; None where it continued one."""
    assert call.args is not None
    options = dict(call.options)
    for name in ("past_key_values", "cache"):
        cache = options.pop(name, None)
        if cache is not None and _is_filled_before(cache, call):
            return None
    return call.args, options


def _is_filled_before(cache: Any, call: ModelCall) -> bool:
    """Whether a cache held more than this call has put into it."""
    tokens = call.options.get("input_ids", call.args[0] if call.args else None)
    length = cache.get_seq_length() if hasattr(cache, "get_seq_length") else cache.length
    return tokens is None or int(length) > tokens.shape[1]


def _read_at_once(trace: Trace, model: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A generated text, as one that is read."""
    texts = trace.run.texts
    device = next(model.parameters()).device
    tokens = {name: text.tokens.to(device) for name, text in texts.items()}
    if "tokens" not in tokens or (tokens["tokens"] < 0).any():
        raise InterventionError(
            "A generated run is repeated from its tokens, and these were not recorded. Run the "
            "text at once, model(**inputs), or generate it again under gf.change."
        )
    if isinstance(model, EncoderDecoder):
        source = tokens["source"]
        mask = Padding(source != model.special.pad) if (source == model.special.pad).any() else None
        return (source, tokens["tokens"]), {"source_mask": mask}
    if isinstance(model, Decoder | Encoder):
        return (tokens["tokens"],), {}
    first = trace.run.calls[0].options
    mask = first.get("attention_mask")
    if mask is not None and not bool(mask.all()):
        raise InterventionError(
            "A generated run with padding cannot be repeated at once. Generate sequences of one "
            "length, or one at a time."
        )
    if "source" in tokens:
        return (), {"input_ids": tokens["source"], "decoder_input_ids": tokens["tokens"]}
    return (), {"input_ids": tokens["tokens"]}


def _complete(changed: Trace, before: Run, known: KnownBlocks) -> None:
    """Add what was not computed again: sites and streams below the change."""
    run = changed.run
    for stack, stream in before.streams.items():
        n_known = sum(name == stack for name, _ in known)
        new = run.streams.get(stack)
        below = [step for step in stream.steps if find_layer(step) < n_known]
        if new is None:
            run.streams[stack] = stream
        elif below:
            run.streams[stack] = replace(new, start=stream.start, steps=[*below, *new.steps])
        run.sites |= {n: s for n, s in before.sites.items() if _is_known(n, stack, n_known)}
    run.streams = {stack: run.streams[stack] for stack in before.streams if stack in run.streams}
    run.sites = {n: run.sites[n] for n in before.sites if n in run.sites} | run.sites
    run.texts = before.texts | run.texts


def find_layer(step: Part | Transform) -> int:
    """The layer of a step of the stream."""
    return step.layer if isinstance(step, Part) else int(step.name.split(".")[1])


def _is_known(site: str, stack: str, n_known: int) -> bool:
    parts = site.split(".")
    return parts[0] == stack and len(parts) > 1 and parts[1].isdigit() and int(parts[1]) < n_known
