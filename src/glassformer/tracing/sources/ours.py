"""Recording our own models: their stacks announce the passes, their `core` modules the operands.

A model computes the same with and without a listener, to the bit.
"""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.functional import Bias, Mask
from glassformer.functional.biases import as_bias
from glassformer.functional.cache import StaticCache
from glassformer.functional.masks import as_mask
from glassformer.functional.statistics.kernel_lse import KernelLse
from glassformer.layers import Core, PatchEmbedding, TokenEmbedding
from glassformer.models import Decoder, Encoder, EncoderDecoder, ModelCache, VisionEncoder
from glassformer.models.output_heads import NextTokenHead
from glassformer.models.stack import Stack
from glassformer.tracing.compilation import strip_wrappers
from glassformer.tracing.layout import Layout, Place
from glassformer.tracing.mask_rules import MaskFormula
from glassformer.tracing.model_lookup import ModuleTree
from glassformer.tracing.norm_form import NormForm
from glassformer.tracing.patches import FAILED, Tap, listen
from glassformer.tracing.readout import ClassLabels, Operation, Readout, Slot
from glassformer.tracing.recorder import Recorder
from glassformer.tracing.site_steps import Step


class OurSource:
    """Listens to the token embedding, the stacks and the attention cores of a model of ours."""

    reorders: tuple[str, str] = ("reorder", "indices")

    def __init__(self, tree: ModuleTree) -> None:
        assert isinstance(tree.model, Encoder | Decoder | EncoderDecoder | VisionEncoder)
        self.tree, self.model = tree, tree.model
        self.tokens: Tensor | None = None  # that were embedded, and that no stack has read yet
        self.stop = 0  # the length of the text with the present pass
        self.cache: ModelCache | None = None  # of the last run: it knows which tokens follow
        self.is_fixed = False  # whether keys and values lie in buffers that later steps fill
        self.lse: KernelLse | None = None
        self.call: tuple[tuple, dict[str, Any]] | None = None  # of the model, now being answered

    def check(self, recorder: Recorder) -> None:
        config = self.model.config
        recorder.selection.check(max(config.n_layers, config.decoder_layers), config.n_heads)
        if recorder.tokenizer is None:
            recorder.tokenizer = self.model.tokenizer

    def attach(self, recorder: Recorder, undo: list[Callable[[], None]]) -> None:
        recorder.trace.model |= _describe_model(self.model)
        has_source = isinstance(self.model, EncoderDecoder)
        paths = {module: strip_wrappers(path) for module, path in self.tree.paths.items()}
        places: dict[nn.Module, Place] = {
            module: _name_place(path) for module, path in paths.items() if isinstance(module, Core)
        }
        writer = "decoder" if any(p.stack == "decoder" for p in places.values()) else "encoder"
        recorder.layout = Layout(
            name=recorder.name, places=places, writer=writer, has_source=has_source
        )
        self.recorder = recorder
        undo.append(self._stop_listening)
        if recorder.residual:
            tap = recorder.tap(before=self._note_call, after=self._forget_call)
            undo.append(listen(self.model, "forward", tap))
        for module, path in paths.items():
            if isinstance(module, TokenEmbedding) and path == "embedding":
                undo.append(listen(module, "forward", recorder.tap(before=self._note_tokens)))
            elif isinstance(module, PatchEmbedding):
                undo.append(listen(module, "forward", recorder.tap(before=self._note_patches)))
            elif isinstance(module, Stack):
                is_read = has_source and path == "encoder"
                tap = recorder.tap(before=self._read if is_read else self._write)
                undo.append(listen(module, "forward", tap))
            elif isinstance(module, Core) and (
                recorder.selection.has_layer(places[module].layer)
                or recorder.is_changed(places[module])
            ):
                undo.append(listen(module, "forward", self._tap_core(places[module])))

    def build_readout(self, stack: str) -> Readout | None:
        """What the model makes of the end of a stack's stream: a norm, then its head."""
        model, config = self.model, self.model.config
        head = getattr(model, "head", None)
        if head is None and isinstance(model, Encoder) and config.output.classes:
            return self._build_classes(model)
        if head is None or isinstance(model, VisionEncoder):
            return None
        if stack == "encoder" and isinstance(model, EncoderDecoder):
            return None
        norm = getattr(model, stack).final_norm if config.norms.final else None

        embedding = model.embedding  # and not the model, which a trace must not keep

        def read(x: Tensor) -> Tensor:
            return head(x if norm is None else norm(x), embedding.weight)

        readout = Readout(operations=[Operation(read, (Slot(0),), {}, 1)])
        if norm is not None:
            sample = torch.linspace(-1, 1, config.dim).to(model.embedding.weight)[None]
            with torch.no_grad():
                readout.norm = NormForm.of(norm, sample, norm(sample))
        if not isinstance(head, NextTokenHead):
            readout.reason = "a dense layer and a nonlinearity lie before the unembedding"
            return readout
        readout.matrix = (model.embedding.weight if config.output.tied else head.weight).detach()
        readout.bias = head.bias.detach() if config.output.bias else None
        readout.factor = config.output.scale
        return readout

    def _build_classes(self, model: Encoder) -> Readout:
        """The classifier, at every position as if that were the first, which it reads."""
        norm = model.encoder.final_norm if model.config.norms.final else None
        classifier = model.classifier

        def read(x: Tensor) -> Tensor:
            x = x if norm is None else norm(x)
            return classifier(x.flatten(0, 1)[:, None]).unflatten(0, x.shape[:2])

        return Readout(
            operations=[Operation(read, (Slot(0),), {}, 1)],
            reason="a dense layer and a nonlinearity lie before the classes",
            classes=ClassLabels(tuple(model.config.output.classes)),
            pooled=(0,),
        )

    def _tap_core(self, place: Place) -> Tap:
        recorder = self.recorder
        tap = Tap(place.name, recorder.guard, partial(recorder.refuse, place))
        if recorder.is_changed(place) or recorder.is_silent:
            return tap._replace(around=partial(self._change, place))
        return tap._replace(before=self._listen_to_kernel, after=partial(self._record, place))

    def _note_call(self, _model: nn.Module, args: tuple, options: dict[str, Any]) -> None:
        self.call = args, options

    def _forget_call(self, _model: nn.Module, _args: tuple, _options: dict, _out: Any) -> None:
        self.call = None

    def _note_tokens(self, _module: nn.Module, args: tuple, options: dict[str, Any]) -> None:
        self.tokens = None
        self.tokens = (args[0] if args else options["tokens"]).detach()

    def _note_patches(self, module: PatchEmbedding, args: tuple, options: dict[str, Any]) -> None:
        """An image has no tokens: its patches are numbered, behind the class vector."""
        images = args[0] if args else options["images"]
        (side,) = {images.shape[-1] // n for n in module.projection.kernel_size}
        places = torch.arange(side * side + 1, device=images.device)
        self.tokens = places.expand(len(images), -1)

    def _read(self, module: nn.Module, _args: tuple, _options: dict[str, Any]) -> None:
        """The encoder reads the source."""
        self.recorder.begin_pass(reader=module)
        run = self.recorder.read()
        assert self.tokens is not None
        run.add_tokens("source", self.tokens)
        self.stop, self.is_fixed = self.tokens.shape[1], False

    def _write(self, _module: nn.Module, _args: tuple, options: dict[str, Any]) -> None:
        """The stack whose text grows reads its next tokens."""
        recorder = self.recorder
        recorder.begin_pass()
        self.cache = cache = options.get("cache")
        start = 0 if cache is None else int(cache.length)
        run = recorder.write(cache, start, has_read=isinstance(self.model, EncoderDecoder))
        assert self.tokens is not None
        self.stop = run.stop = start + self.tokens.shape[1]
        self.is_fixed = cache is not None and isinstance(cache.layers[0], StaticCache)
        run.add_tokens("tokens", self.tokens)
        if recorder.residual:
            run.note_call(self.model, *(self.call or (None, {})))
        recorder.count_step(len(self.tokens))

    def _listen_to_kernel(self, _module: nn.Module, _args: tuple, _options: dict) -> None:
        self._stop_listening()  # where recording the last call failed
        self.lse = KernelLse()
        self.lse.__enter__()

    def _stop_listening(self) -> None:
        listener, self.lse = self.lse, None
        if listener is not None:
            listener.__exit__(None, None, None)

    def _record(self, place: Place, _module: Any, args: tuple, options: dict, out: Any) -> None:
        listener = self.lse
        self._stop_listening()
        if out is not FAILED:
            lse = None if listener is None else listener.lse
            make_step = partial(self._make_step, place, args, options, out, lse)
            self.recorder.record(place, lambda: (make_step(), None))

    def _change(
        self, place: Place, call: Callable[..., Tensor], _module: Any, args: tuple, options: dict
    ) -> Tensor:
        out = call(*args, **options)
        if not self.recorder.is_changed(place):  # in this pass
            return out
        make_step = partial(self._make_step, place, args, options, out, None)
        return self.recorder.change_attention(place, out, self.stop - out.shape[2], make_step)

    def _make_step(
        self, place: Place, args: tuple, options: dict[str, Any], out: Tensor, lse: Tensor | None
    ) -> Step:
        q, k, v = args
        if self.is_fixed and not place.is_cross:  # only what is filled, copied: buffers change
            k, v = (operand[:, :, : self.stop].clone() for operand in (k, v))
        L, S = q.shape[2], k.shape[2]
        mask, bias = options.get("mask"), options.get("bias")
        formula = None if mask is None else _drop_offsets(as_mask(mask), S - L)
        return Step(
            q=q,
            k=k,
            v=v,
            rule=MaskFormula(L=L, S=S, formula=formula),
            bias=None if bias is None else _drop_offsets(as_bias(bias), S - L),
            scale=options.get("scale"),
            softcap=options.get("softcap"),
            lse=lse if lse is not None and lse.shape == q.shape[:3] else None,
            out=out,
            stop=self.stop,
        )


def _name_place(path: str) -> Place:
    """decoder.layers.2.cross.core is decoder.2.cross."""
    stack, _, layer, part, _ = path.split(".")
    is_cross = part == "cross"
    name = f"{stack}.{layer}.{'cross' if is_cross else 'self'}"
    return Place(name, stack, int(layer), is_cross)


def _drop_offsets(part: Any, aligned: int) -> Any:
    """A mask or a bias without offsets that bottom-right alignment implies: so steps join."""
    changes: dict[str, Any] = {}
    for each in fields(part):
        value = getattr(part, each.name)
        if isinstance(value, Mask | Bias):
            changes[each.name] = _drop_offsets(value, aligned)
        elif each.name == "offset" and value is not None:
            single = not isinstance(value, Tensor) or value.ndim == 0
            changes[each.name] = None if single and int(value) == aligned else value
        elif isinstance(value, Tensor):
            changes[each.name] = value.detach()
    return replace(part, **changes)


def _describe_model(model: Encoder | Decoder | EncoderDecoder | VisionEncoder) -> dict[str, Any]:
    plain = json.loads(json.dumps(model.config.as_dict()))  # as a file will give it back
    named = {} if model.name is None else {"name": model.name}
    return {"library": "glassformer", **named, "config": plain}
