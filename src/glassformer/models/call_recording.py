"""One run of a model, call by call, with the shape of everything that passes.

Hooks follow the modules; a TorchFunctionMode sees what happens between them (heads are split,
residuals added). A call counts if its input depends on the tokens, and several calls that
make one idea, such as a rotation, count as one. Attention runs by its definition, so that scores
and weights exist, and nothing looks into a tensor: the whole run fits on the "meta" device.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from glassformer.functional import reference
from glassformer.layers import (
    Block,
    Core,
    CrossAttention,
    ExpertLinear,
    LatentAttention,
    LearnedPositions,
    MixtureOfExperts,
    RMSNorm,
    Router,
    SelfAttention,
    SinusoidalPositions,
    TokenEmbedding,
)
from glassformer.models.stack import Stack

_LEAVES: dict[type, str] = {  # modules that count as one call, whatever happens inside
    nn.Linear: "linear",
    ExpertLinear: "linear",
    Router: "route",
    nn.LayerNorm: "norm",
    RMSNorm: "norm",
    LearnedPositions: "lookup",
    SinusoidalPositions: "waves",
}
_READERS = (TokenEmbedding, LearnedPositions, SinusoidalPositions)  # of whole numbers
_FUNCTIONS = {"embedding": "lookup", "chunk": "halve", "getitem": "pick", "mul": "multiply"}
_CORE_FUNCTIONS = {"tanh": "softcap", "add": "bias", "softmax": "softmax"}
_VIEWS = {"unflatten", "transpose", "split", "flatten"}  # between a row and its heads
_GROUPED = {"split", "rotate", "merge"}
_RESULTS = {  # names of results
    "halve": ("gate", "up"),
    "route": ("affinities", "weights", "experts"),
    "scores": ("scores",),
    "softcap": ("scores",),
    "bias": ("scores",),
    "mask": ("scores",),
    "softmax": ("weights",),
    "attend": ("out",),
}


@dataclass(slots=True, eq=False)
class Value:
    """A tensor that passed: its name, its shape, and the call that made it, None for an input."""

    name: str
    shape: tuple[int, ...]
    call: int | None = None


@dataclass(slots=True, eq=False)
class Call:
    """What was done, where, with what; `note` says which norm, which mask, what was added."""

    site: str
    operation: str
    module: str
    note: str = ""
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    parameters: list[Value] = field(default_factory=list)


@dataclass(slots=True)
class _Frame:
    path: str
    module: nn.Module
    options: dict[str, Any]
    is_masked: bool = False


class CallRecorder(TorchFunctionMode):
    """Records what a model does while it is entered; for a model that is thrown away afterwards.

    Sites are `encoder.0.self`, `decoder.3.cross`, `decoder.3.feed_forward`, `decoder.embedding`,
    `decoder.final`; behind the stacks they are named after the head.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self._values: dict[int, Value] = {}
        self._parameters = {
            id(p): [Value(name, tuple(p.shape))] for name, p in model.named_parameters()
        }
        self._kept: list[Tensor] = []  # as long as a tensor lives, no other has its id
        self._frames: list[_Frame] = []
        self._leaf: nn.Module | None = None
        self._part = ""
        for path, module in model.named_modules():
            if isinstance(module, Core):
                module.forward = reference.attention
            module.register_forward_pre_hook(partial(self._enter, path), with_kwargs=True)
            module.register_forward_hook(self._leave, with_kwargs=True)

    def watch(self, tensor: Tensor, name: str, call: int | None = None) -> Value:
        """Follow a tensor from here on."""
        value = Value(name, tuple(tensor.shape), call)
        self._values[id(tensor)] = value
        self._kept.append(tensor)
        return value

    def finish(self) -> list[Call]:
        """Complete the sites of all calls, and return the calls."""
        for call in self.calls:
            call.site = call.site or call.module.partition(".")[0]
        return self.calls

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "").strip("_")
        if self._leaf is None and name != "get":  # which only reads an attribute
            made = [t for t in _tensors(result) if t.is_floating_point()]
            if made:
                self._see(name, args, _tensors((args, kwargs)), made)
        return result

    def _enter(self, path: str, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        if self._leaf is not None:
            return
        self._frames.append(_Frame(path, module, kwargs))
        if isinstance(module, Stack):
            for call in self.calls:  # earlier calls computed the stack's input
                call.site = call.site or f"{path}.embedding"
        elif isinstance(module, Block):
            self._see_tables(kwargs.get("tables"))
        elif isinstance(module, CrossAttention):
            context = self._values[id(args[1])]
            self._values[id(args[1])] = replace(context, name="context")
        elif isinstance(module, Core):
            for tensor, name in zip(args, "qkv", strict=True):
                self._rename(self._values[id(tensor)], name)
        elif isinstance(module, _READERS) and id(args[0]) not in self._values:
            self.watch(args[0], path.rpartition(".")[2])
        if _leaf_kind(module):
            self._leaf = module

    def _leave(self, module: nn.Module, args: Any, kwargs: dict[str, Any], out: Any) -> None:
        if self._leaf is module:
            self._leaf = None
            kind = _leaf_kind(module)
            note = type(module).__name__ if kind == "norm" else ""
            given = [*_tensors((args, kwargs)), *module.parameters(recurse=False)]
            self._add(kind, note, given, _tensors(out))
        if self._leaf is None:
            self._frames.pop()

    def _see(self, name: str, args: Any, given: list[Tensor], made: list[Tensor]) -> None:
        made = [t for t in made if id(t) not in self._values]
        if not made:
            return
        known = [self._values[id(t)] for t in given if id(t) in self._values]
        if not known:  # made of parameters alone, such as a bias looked up for each distance
            parameters = self._parameters_of(given)
            if parameters:
                self._parameters |= {id(t): parameters for t in made}
                self._kept += made
            return
        operation, note = self._meaning(name, args, given, known)
        if operation:
            self._add(operation, note, given, made)
        else:
            self._values |= {id(t): known[0] for t in made}
            self._kept += made

    def _meaning(
        self, name: str, args: Any, given: list[Tensor], known: list[Value]
    ) -> tuple[str, str]:
        """The operation that a function represents, and a note; "" if it changes nothing."""
        frame = self._frames[-1] if self._frames else _Frame("", nn.Identity(), {})
        makers = [self.calls[v.call].operation for v in known if v.call is not None]
        if isinstance(frame.module, Core):
            return self._meaning_in_core(name, frame, makers)
        if name == "to":  # another dtype
            return "", ""
        if isinstance(frame.module, SelfAttention | LatentAttention | CrossAttention):
            return self._meaning_in_attention(name, frame, makers), ""
        if isinstance(frame.module, MixtureOfExperts) and name in ("unsqueeze", "add"):
            return ("", "") if name == "unsqueeze" else (name, "shared")
        if name == "add":
            if isinstance(frame.module, Block):
                return "residual", ""
            latest = max((v.call for v in known if v.call is not None), default=None)
            added = "" if latest is None else self.calls[latest].module
            return name, added.rpartition(".")[2]
        if name == "mul" and len(given) == 1:
            return "scale", next((str(n) for n in args if not isinstance(n, Tensor)), "")
        if name == "linear":
            used = {id(p) for call in self.calls for p in call.parameters}
            is_tied = any(id(p) in used for p in self._parameters_of(given))
            return name, "tied" if is_tied else ""
        return _FUNCTIONS.get(name, name), ""

    def _meaning_in_attention(self, name: str, frame: _Frame, makers: list[str]) -> str:
        is_latent = isinstance(frame.module, LatentAttention)
        if is_latent and name in ("unsqueeze", "squeeze", "expand"):  # one head as all of them
            return ""
        if name in _VIEWS and makers[0] in ("attend", "merge"):
            return "merge"
        if name in _VIEWS and makers[0] in ("linear", "split"):
            return "divide" if is_latent and (name, makers[0]) == ("split", "linear") else "split"
        if is_latent and name == "cat":
            return "join"
        return name if frame.options.get("tables") is None else "rotate"

    def _meaning_in_core(self, name: str, frame: _Frame, makers: list[str]) -> tuple[str, str]:
        mask = frame.options.get("mask")
        if name == "matmul":
            return ("attend" if "softmax" in makers else "scores"), ""
        if name == "masked_fill" and mask is not None and not frame.is_masked:
            frame.is_masked = True  # the definition's later ones only empty rows without a key
            return "mask", repr(mask)
        return _CORE_FUNCTIONS.get(name, ""), ""

    def _add(self, operation: str, note: str, given: list[Tensor], made: list[Tensor]) -> None:
        path = self._frames[-1].path if self._frames else ""
        known = [self._values[id(t)] for t in given if id(t) in self._values]
        last = self.calls[-1] if self.calls else None
        if last and operation in _GROUPED and (last.operation, last.module) == (operation, path):
            call, index = last, len(self.calls) - 1
            call.outputs = [v for v in call.outputs if v not in known]
        else:
            call, index = Call(self._site(), operation, path, note), len(self.calls)
            self.calls.append(call)
        call.inputs += [v for v in known if v.call != index and v not in call.inputs]
        call.parameters += [p for p in self._parameters_of(given) if p not in call.parameters]
        names = _RESULTS.get(operation, ())
        for i, tensor in enumerate(made):
            name = names[i] if i < len(names) else "x"
            call.outputs.append(self.watch(tensor, name, index))

    def _parameters_of(self, tensors: list[Tensor]) -> list[Value]:
        return [p for t in tensors for p in self._parameters.get(id(t), ())]

    def _see_tables(self, tables: tuple[Tensor, Tensor] | None) -> None:
        """Rotary tables come from places alone, once for all blocks: followed from here."""
        if tables is None or id(tables[0]) in self._values:
            return
        stack = next(f for f in self._frames if isinstance(f.module, Stack))
        call = Call(f"{stack.path}.embedding", "angles", stack.path)
        call.inputs.append(self.watch(stack.options["positions"], "positions"))
        self.calls.append(call)
        for name, table in zip(("cos", "sin"), tables, strict=True):
            call.outputs.append(self.watch(table, name, len(self.calls) - 1))

    def _rename(self, value: Value, name: str) -> None:
        """What core takes as a query was one before it was normed and turned."""
        value.name = name
        call = None if value.call is None else self.calls[value.call]
        if call is not None and call.operation in ("norm", "rotate"):
            turned = call.inputs[-len(call.outputs) :]  # behind the tables
            self._rename(turned[call.outputs.index(value)], name)

    def _site(self) -> str:
        stack = next((f.path for f in self._frames if isinstance(f.module, Stack)), None)
        if stack is None:
            return ""
        for i, frame in enumerate(self._frames):
            if isinstance(frame.module, Block):
                if i + 1 < len(self._frames):  # else between the parts: a residual
                    child = self._frames[i + 1].path.removeprefix(f"{frame.path}.")
                    part = child.partition(".")[0].removesuffix("_norm")
                    self._part = "self" if part == "attention" else part
                return f"{stack}.{frame.path.rpartition('.')[2]}.{self._part}"
        is_over = any(call.site.startswith(f"{stack}.0.") for call in self.calls)
        return f"{stack}.{'final' if is_over else 'embedding'}"


def _leaf_kind(module: nn.Module) -> str:
    return next((name for kind, name in _LEAVES.items() if isinstance(module, kind)), "")


def _tensors(thing: Any) -> list[Tensor]:
    """All tensors in nested lists, tuples and dicts, in order."""
    found: list[Tensor] = []
    left = [thing]
    while left:
        thing = left.pop()
        if isinstance(thing, Tensor):
            found.append(thing)
        elif isinstance(thing, tuple | list):
            left += reversed(thing)
        elif isinstance(thing, dict):
            left += reversed(thing.values())
    return found
