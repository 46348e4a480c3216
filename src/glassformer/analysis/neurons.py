"""The neurons of feed-forward networks: what the matrices that write to the stream have read.

A trace keeps what a feed-forward network adds, not its neurons, which are several times as many.
They are read by running the model once more, with a hook on the module that owns the matrix; that
it was the recorded run shows in the sum of what they write.
"""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.analysis.lens_data import Batch, call_model, evaluating
from glassformer.errors import TraceError
from glassformer.models import EncoderDecoder
from glassformer.tracing.model_lookup import ModuleTree, find_model
from glassformer.tracing.stream import Part, Stream
from glassformer.tracing.text_labels import EMBEDDED
from glassformer.tracing.trace import Trace


def read_neurons(
    model: nn.Module,
    trace: Trace,
    stream: Stream,
    *,
    inputs: Batch | None,
    sequence: int,
    row: int,
) -> dict[str, Float[Tensor, " F"]]:
    """The activations at one position, by the names of the feed-forward parts, in float64."""
    parts = [part for part in stream.parts if part.kind == "mlp"]
    owners = _find_owners(model, parts)
    calls: dict[nn.Module, list[Tensor]] = {module: [] for module in owners.values()}

    def keep(module: nn.Module, args: tuple, options: dict[str, Any]) -> None:
        given = args[0] if args else next(iter(options.values()))
        calls[module].append(given.detach())

    hooks = [m.register_forward_pre_hook(keep, with_kwargs=True) for m in calls]
    try:
        with evaluating(model), torch.no_grad():
            if inputs is None:
                call_model(model, _find_inputs(model, trace, sequence))
            else:
                call_model(model, inputs)
    finally:
        for hook in hooks:
            hook.remove()
    at = row if stream.rows is None else stream.rows[row]
    sequence, B = (0, 1) if inputs is None else (sequence, len(stream.start))
    found, n_called = {}, dict.fromkeys(calls, 0)
    for part in parts:
        module = owners[part.name]
        if n_called[module] >= len(calls[module]):
            raise TraceError(
                f"{part.name} did not run again: pass inputs=, what the model was called with."
            )
        given = calls[module][n_called[module]]  # layers may share a module
        n_called[module] += 1
        if given.ndim == 2 and len(given) % B == 0:  # some blocks flatten the places
            given = given.view(B, -1, given.shape[-1])
        if given.ndim != 3 or sequence >= len(given) or at >= given.shape[1]:
            raise TraceError(
                f"{part.name} must run on what was recorded; it read a tensor of shape "
                f"{tuple(given.shape)}. Pass inputs=, what the model was called with."
            )
        found[part.name] = given[sequence, at].double().cpu()
    return found


def _find_owners(model: nn.Module, parts: list[Part]) -> dict[str, nn.Module]:
    """The module whose matrix writes each part."""
    modules: dict[tuple[int, int], nn.Module] = {}
    for module in model.modules():
        for weight in module.parameters(recurse=False):
            modules.setdefault((weight.data_ptr(), weight.numel()), module)
    owners = {}
    for part in parts:
        writing = part.writing
        if writing is None:
            raise TraceError(
                f"{part.name} cannot be split into neurons: no single matrix writes it to the "
                "stream; a mixture of experts has one for each expert."
            )
        owner = modules.get((writing.weight.data_ptr(), writing.weight.numel()))
        if owner is None:
            raise TraceError(
                f"The matrix of {part.name} is none of this model's; pass the model that was "
                "recorded."
            )
        owners[part.name] = owner
    return owners


def _find_inputs(model: nn.Module, trace: Trace, sequence: int) -> Batch:
    """The recorded tokens of one sequence, as the model reads them."""
    texts = {name: text.tokens for name, text in trace.run.texts.items()}
    tokens, source = texts.get("tokens"), texts.get("source")
    if tokens is None or any(bool((t == EMBEDDED).any()) for t in texts.values()):
        raise TraceError(
            "This run read more than tokens; pass inputs=, what the model was called with."
        )
    tokens = tokens[sequence : sequence + 1]
    if source is None:
        return tokens
    source = source[sequence : sequence + 1]
    if isinstance(find_model(ModuleTree(model)), EncoderDecoder):
        return source, tokens
    both: Mapping[str, Tensor] = {"input_ids": source, "decoder_input_ids": tokens}
    return both
