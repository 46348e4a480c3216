"""Recording models of transformers: what their attention interface is given is kept.

The model computes by the function that it would have called anyway, so its outputs are the same to
the bit. What that function is known to do with masks, biases, caps and sinks is what a site says;
for eager attention, whose code every model brings along, one row of each call is recomputed, and a
site that differs is refused. A row in which nothing is open, of padding, has weights of zero here,
while eager attention fills it with the mean of v.
"""

import inspect
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from glassformer.errors import InterventionError, TraceError
from glassformer.tracing.head_shards import find_head_shard, find_rank, is_sharded
from glassformer.tracing.layout import Place
from glassformer.tracing.model_lookup import ModuleTree
from glassformer.tracing.patches import FAILED, listen, listen_to_each
from glassformer.tracing.recorder import Recorder
from glassformer.tracing.site_steps import Step
from glassformer.tracing.sources.custom_attention import CustomAttention, head_count
from glassformer.tracing.sources.operand_recovery import explain_product
from glassformer.tracing.sources.operation_graph import Node
from glassformer.tracing.sources.transformers_call import as_step
from glassformer.tracing.sources.transformers_interface import (
    KNOWN,
    Call,
    Computed,
    enter_interface,
    find_implementations,
    parameters,
)
from glassformer.tracing.sources.transformers_layout import TransformersLayout, describe_model
from glassformer.tracing.stages import skip_rehearsals
from glassformer.tracing.text_labels import EMBEDDED


class _Calls:
    """How often the modules were called in one pass, and what its masks were found to say."""

    def __init__(self) -> None:
        self.entries: Counter[nn.Module] = Counter()
        self.of_entry: Counter[nn.Module] = Counter()  # of attention, since the last entry
        self.of_pass: Counter[nn.Module] = Counter()
        self.masks: dict[Any, Any] = {}


class TransformersSource:
    """Listens to a model and the models inside it, to its interface and its custom attention."""

    reorders: tuple[str, str] = ("reorder_cache", "beam_idx")

    def __init__(self, tree: ModuleTree, first_layer: int | None = None) -> None:
        self.tree: ModuleTree = tree
        self.first_layer = first_layer  # of a stage that counts its layers from 0
        self.calls = _Calls()
        self.depth = self.n_passes = 0
        self.is_described = False

    def check(self, recorder: Recorder) -> None:
        del recorder
        if self.first_layer is not None:
            TransformersLayout.of(self.tree, self.first_layer)
        if others := find_implementations(self.tree) - {*KNOWN, "None"}:
            raise TraceError(
                f"watch knows the arithmetic of {' and '.join(KNOWN)}; this model uses "
                f"{', '.join(sorted(others))}. Use model.set_attn_implementation('sdpa')."
            )

    def build_readout(self, stack: str) -> None:
        """Found while the model runs, if at all."""
        del stack

    def attach(self, recorder: Recorder, undo: list[Callable[[], None]]) -> None:
        layout = TransformersLayout.of(self.tree, self.first_layer)
        if layout.stage.is_part or is_sharded(self.tree.model):
            recorder.trace.part = find_rank()
        if layout.stage.is_part:
            if recorder.editor is not None:
                raise TraceError("it is a stage of a pipeline, and changes need the whole model")
            recorder.trace.model["stage"] = list(layout.stage.layers)
            skip_rehearsals(undo)
        self.recorder, self.layout, recorder.layout = recorder, layout, layout
        undo.append(self._check_seen)
        is_changing = recorder.editor is not None
        how = {"around": self._change_call} if is_changing else {"after": self._record_call}
        enter_interface(self.tree, recorder.tap(**how), undo)
        for module in layout.roots:
            tap = recorder.tap(before=self._enter, after=self._leave)
            undo.append(listen(module, "forward", tap))
        tap = recorder.tap(before=self._enter_attention)
        undo.append(listen_to_each(layout.places.keys() - layout.custom.keys(), "forward", tap))
        catch = partial(
            recorder.guard.catch, recorder.name, recorder.refuse_all, (InterventionError,)
        )
        custom = CustomAttention(layout.innermost, self._record_product, self._refuse, catch)
        undo.append(custom.close)

        def enter(module: nn.Module, args: tuple, options: dict[str, Any]) -> None:
            self._enter_attention(module, args, options)
            custom.enter(module)

        def leave(module: nn.Module, _args: tuple, _options: dict[str, Any], out: Any) -> None:
            custom.leave(module, out)

        for module in layout.custom:
            undo.append(listen(module, "forward", recorder.tap(before=enter, after=leave)))

    def _describe(self) -> None:
        """Put off until the model has run: a GPU would have nothing to do meanwhile."""
        if not self.is_described:
            self.is_described = True
            self.recorder.trace.model |= describe_model(self.layout.config)

    def _check_seen(self) -> None:
        """Where passes showed no attention at all, say so."""
        self._describe()
        recorder = self.recorder
        selection = recorder.selection
        is_selected = selection.layers is not None or selection.heads is not None
        if recorder.is_silent or (recorder.trace.part is not None and is_selected):
            return  # what is selected may be on other ranks
        recorder.finish()
        runs = recorder.trace.recorded
        if self.n_passes and not any(run.sites or run.refusals for run in runs):
            layers = selection.layers
            selected = "" if layers is None else f" of layers {sorted(layers)}"
            raise TraceError(
                f"it ran {self.n_passes} time(s), but no attention{selected} went through the "
                "interface of transformers."
            )

    def _enter(self, module: nn.Module, args: tuple, options: dict[str, Any]) -> None:
        """A model is called: from outside, or by a model that it is a part of."""
        is_outermost, self.depth = not self.depth, self.depth + 1
        recorder, layout = self.recorder, self.layout
        if is_outermost:
            self.n_passes += 1
            self.calls = _Calls()
            recorder.begin_pass(reader=module if module in layout.readers else None)
        given = _name_arguments(module, args, options)
        if is_outermost and recorder.reader is not None:
            recorder.read()
        elif is_outermost:
            cache = given.get("past_key_values")
            has_read = layout.has_source and given.get("encoder_outputs") is not None
            recorder.write(cache, _cache_length(cache), has_read=has_read)
        run = recorder.run
        if run is None:  # which run this is could not be found out; the pass is refused
            return
        if is_outermost and recorder.residual:
            run.note_call(module, args, options)
        text = layout.find_text(module, is_outermost=is_outermost)
        is_model = module is not self.tree.model or hasattr(module, "get_input_embeddings")
        tokens = _find_tokens(given) if is_model else _find_first_tokens(given)
        if text is not None and tokens is not None:
            run.add_tokens(text, tokens)

    def _leave(self, _module: nn.Module, _args: tuple, _options: dict, out: Any) -> None:
        self.depth -= 1
        self._describe()
        run = self.recorder.run
        if not self.depth and run is not None and run.cache is None and out is not FAILED:
            self.recorder.follow_cache(run, getattr(out, "past_key_values", None))

    def _enter_attention(self, module: nn.Module, _args: tuple, _options: dict) -> None:
        self.calls.entries[module] += 1
        self.calls.of_entry[module] = 0

    def _record_call(
        self, module: nn.Module, args: tuple, options: dict, computed: Computed
    ) -> None:
        """A call through the interface."""
        if self.depth:
            self._record_at(self._name_call(module), args, options, computed)

    def _record_at(self, place: Place, args: tuple, options: dict, computed: Computed) -> None:
        call = computed.call(args, options)
        make_step = partial(self._make_step, place, call, computed.out)
        self.recorder.record(place, make_step, n_sequences=len(call.q))

    def _make_step(self, place: Place, call: Call, out: Any) -> tuple[Step, Tensor | None]:
        stop = self.recorder.start + call.q.shape[2]
        step, difference = as_step(call, out, stop=stop, known=self.calls.masks)
        step.shard = find_head_shard(call.module, call.q.shape[1])
        return self._drop_unwritten(step, place), difference

    def _change_call(
        self, call: Callable[..., Computed], module: nn.Module, args: tuple, options: dict
    ) -> Computed:
        """A call through the interface, changed where an intervention says so."""
        computed = call(*args, **options)
        if not self.depth:
            return computed
        recorder, place = self.recorder, self._name_call(module)
        if not recorder.is_changed(place):
            with recorder.guard.catch(recorder.name, recorder.refuse_all):
                self._record_at(place, args, options, computed)
            return computed
        called = computed.call(args, options)
        heads, *rest = computed.out if isinstance(computed.out, tuple) else (computed.out,)
        if heads.ndim != 4 or heads.shape[1:3] != (called.q.shape[2], called.q.shape[1]):
            raise InterventionError(
                f"{place.name} must return (B, L, H, E) to be changed; its attention returns "
                f"{tuple(heads.shape)}."
            )
        changed = recorder.change_attention(
            place,
            heads.transpose(1, 2),
            recorder.start,
            lambda: self._make_step(place, called, computed.out)[0],
        )
        changed = changed.transpose(1, 2).contiguous()
        return computed._replace(
            out=(changed, *rest) if isinstance(computed.out, tuple) else changed
        )

    def _record_product(self, module: nn.Module, node: Node) -> None:
        """A product with a softmax, or a fused kernel, in a module without the interface."""
        if not self.depth:
            return
        place, start, n_heads = self._name_call(module), self.recorder.start, head_count(module)

        def make_step() -> Step:
            step = explain_product(node, start=start, n_heads=n_heads)
            return self._drop_unwritten(step, place)

        if self.recorder.is_changed(place):
            self._change_product(place, node, make_step)
        else:
            self.recorder.record(place, lambda: (make_step(), None))

    def _change_product(self, place: Place, node: Node, make_step: Callable[[], Step]) -> None:
        """Overwrite the output of attention that a module has computed by itself."""
        try:
            out = make_step().out
        except TraceError as error:
            raise InterventionError(f"{place.name} cannot be changed: {error}") from None
        if (
            out is None
            or out.untyped_storage().data_ptr() != node.tensor.untyped_storage().data_ptr()
        ):
            raise InterventionError(f"{place.name} cannot be changed: its output is not known.")
        changed = self.recorder.change_attention(place, out.clone(), self.recorder.start, make_step)
        with torch.no_grad():
            out.copy_(changed)

    def _drop_unwritten(self, step: Step, place: Place) -> Step:
        run = self.recorder.run
        is_fixed = run is not None and bool(getattr(run.cache, "is_compileable", False))
        return step.drop_unwritten() if is_fixed and not place.is_cross else step

    def _refuse(self, module: nn.Module, reason: str) -> None:
        if self.depth:
            self.recorder.refuse(self.layout.find_place(module), reason)

    def _name_call(self, module: nn.Module) -> Place:
        """The site of this call: layers may share a module, and one may compute attention twice."""
        calls, place = self.calls, self.layout.find_place(module)
        calls.of_entry[module] += 1
        calls.of_pass[module] += 1
        again = calls.entries[module] - 1
        if again > 0 and place.layer is not None and self.layout.is_shared(module):
            return place.in_later_layer(again).numbered_part(calls.of_entry[module])
        return place.numbered_part(calls.of_pass[module])


def _name_arguments(module: nn.Module, args: tuple, options: dict[str, Any]) -> dict[str, Any]:
    if not args:
        return options
    names = parameters(inspect.unwrap(type(module).forward))[1:]
    return {**dict(zip(names, args, strict=False)), **options}


def _find_tokens(given: dict[str, Any]) -> Int[Tensor, "B L"] | None:
    """The tokens that a pass reads; where it reads embeddings, as many unknown ones."""
    ids, embedded = given.get("input_ids"), given.get("inputs_embeds")
    if isinstance(ids, Tensor) and ids.ndim == 2:
        return ids.detach()
    if isinstance(embedded, Tensor) and embedded.ndim == 3:
        return torch.full(embedded.shape[:2], EMBEDDED, device=embedded.device)
    return None


def _find_first_tokens(given: dict[str, Any]) -> Int[Tensor, "B L"] | None:
    """The same of a module that names its arguments as it likes."""
    tensors = {name: value for name, value in given.items() if isinstance(value, Tensor)}
    for name, value in tensors.items():
        is_whole = value.dtype in (torch.int64, torch.int32)
        if is_whole and value.ndim == 2 and not name.endswith(("mask", "position_ids")):
            return value.detach()
    states = (x for x in tensors.values() if x.ndim == 3 and x.is_floating_point())
    return _find_tokens({"inputs_embeds": next(states, None)})


def _cache_length(cache: Any) -> int:
    return int(cache.get_seq_length()) if hasattr(cache, "get_seq_length") else 0
