"""Calls that an exercise wants written by hand: found in the source, and stopped where they run.

The source tells the line before anything runs. Two modes of torch stop what hides from it:
functions under other names, methods, modules, `torch.ops`, `torch._C`, getattr. A learning aid:
code that disables torch's modes through C bypasses it, and cheats nobody but its author.
"""

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# For each group: what may not be called, by its last name; without underscores around it.
GROUPS: dict[str, tuple[str, ...]] = {
    "attention": (
        "scaled_dot_product_attention",
        "scaled_dot_product_attention_math",
        "scaled_dot_product_flash_attention",
        "scaled_dot_product_flash_attention_for_cpu",
        "scaled_dot_product_fused_attention_overrideable",
        "scaled_dot_product_efficient_attention",
        "scaled_dot_product_cudnn_attention",
        "flex_attention",
        "multi_head_attention_forward",
        "native_multi_head_attention",
        "transformer_encoder_layer_fwd",
        "MultiheadAttention",
        "Transformer",
        "TransformerEncoder",
        "TransformerEncoderLayer",
        "TransformerDecoder",
        "TransformerDecoderLayer",
    ),
    "softmax": (
        "softmax",
        "safe_softmax",
        "log_softmax",
        "masked_softmax",
        "softmin",
        "gumbel_softmax",
        "Softmax",
        "LogSoftmax",
        "Softmin",
        "AdaptiveLogSoftmaxWithLoss",
    ),
    "linear": ("linear", "Linear", "LazyLinear", "bilinear", "Bilinear"),
    "layer_norm": (
        "layer_norm",
        "native_layer_norm",
        "LayerNorm",
        "rms_norm",
        "RMSNorm",
        "group_norm",
        "GroupNorm",
        "native_group_norm",
        "batch_norm",
        "native_batch_norm",
        "instance_norm",
    ),
    "dropout": ("dropout", "native_dropout", "alpha_dropout", "Dropout", "feature_dropout"),
    "embedding": ("embedding", "Embedding", "embedding_bag", "EmbeddingBag"),
    "cross_entropy": (
        "cross_entropy",
        "cross_entropy_loss",
        "CrossEntropyLoss",
        "nll_loss",
        "nll_loss_forward",
        "NLLLoss",
    ),
    "einsum": ("einsum",),
    "torch": (),
}
# Packages that a group refuses to import.
PACKAGES: dict[str, tuple[str, ...]] = {"torch": ("torch",), "softmax": ("scipy",)}
NEVER = ("glassformer",)
# What would switch the modes below off; it belongs to no exercise.
SWITCHES = (
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "DisableTorchDispatch",
    "disable_current_modes",
    "pop_mode",
    "pop_mode_temporarily",
    "pop_torch_function_stack",
    "pop_torch_dispatch_stack",
    "unset_dispatch_mode",
)


class Forbidden(BaseException):
    """A forbidden call that was stopped; no Exception, so that `except Exception` lets it by."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def forbidden_names(forbid: Iterable[str]) -> frozenset[str]:
    """The names behind groups and bare names."""
    return frozenset(name for entry in forbid for name in GROUPS.get(entry, (entry,)))


def forbidden_packages(forbid: Iterable[str]) -> tuple[str, ...]:
    """The packages that may not be imported."""
    return NEVER + tuple(name for entry in forbid for name in PACKAGES.get(entry, ()))


def find_forbidden(tree: ast.AST, forbid: Sequence[str]) -> tuple[str, int] | None:
    """The first forbidden name in a source, with its line.

    >>> find_forbidden(ast.parse("import torch.nn.functional as G\\nG.softmax(x, -1)"), ["softmax"])
    ('softmax', 2)
    """
    names, packages = forbidden_names(forbid), forbidden_packages(forbid)
    # A learner may call a function of his own softmax; what it calls is looked at where it runs.
    own = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    # And an attribute: self.linear = nn.Parameter(…).
    own |= {
        n.attr
        for n in ast.walk(tree)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and _is_self(n.value)
    }
    found = [
        (line, name)
        for node in ast.walk(tree)
        for name, line in _find_mentions(node, names - own, packages)
    ]
    line, name = min(found, default=(0, ""))
    return (name, line) if found else None


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _find_mentions(
    node: ast.AST, names: frozenset[str], packages: tuple[str, ...]
) -> Iterable[tuple[str, int]]:
    match node:
        case ast.Attribute(attr=name, lineno=line) if name.strip("_") in names:
            yield name, line
        case ast.Import(names=aliases, lineno=line):
            yield from ((a.name, line) for a in aliases if a.name.split(".")[0] in packages)
        case ast.ImportFrom(module=module, names=aliases, lineno=line):
            if (module or "").split(".")[0] in packages:
                yield str(module), line
            yield from ((a.name, line) for a in aliases if a.name.strip("_") in names)
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
            if name.strip("_") in names:
                yield name, node.lineno


def find_missing(tree: ast.AST, require: Sequence[str]) -> str | None:
    """The first required name that the source never mentions."""
    seen = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    seen |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return next((name for name in require if name not in seen), None)


def bare_name(function: Any) -> str:
    """What a function of torch is called, without namespace, overload and underscores.

    >>> import torch
    >>> bare_name(torch.ops.aten._softmax.default)
    'softmax'
    """
    name = getattr(function, "_opname", None) or getattr(function, "__name__", "")
    if packet := getattr(function, "_overloadpacket", None):
        name = packet.__name__
    return str(name).split(".")[0].strip("_")


class _Functions(TorchFunctionMode):
    def __init__(self, names: frozenset[str], seen: list[str]) -> None:
        super().__init__()
        self.names, self.seen = names, seen

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if (name := bare_name(func)) in self.names:
            self.seen.append(name)
            raise Forbidden(name)
        return func(*args, **(kwargs or {}))


class _Operators(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its whole compiler, for nothing, at the first operator

    def __init__(self, names: frozenset[str], seen: list[str]) -> None:
        super().__init__()
        self.names, self.seen = names, seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (name := bare_name(func)) in self.names:
            self.seen.append(name)
            raise Forbidden(name)
        return func(*args, **(kwargs or {}))


class CallGuard:
    """A context in which forbidden calls raise.

    >>> import torch
    >>> with CallGuard(["softmax"]):
    ...     torch.ones(2).softmax(0)
    Traceback (most recent call last):
    glassformer.school.practice.forbidden.Forbidden: softmax
    """

    def __init__(self, forbid: Sequence[str]) -> None:
        names = forbidden_names(forbid)
        self.seen: list[str] = []  # also what a bare `except:` has swallowed
        self.modes = (_Operators(names, self.seen), _Functions(names, self.seen)) if names else ()

    def __enter__(self) -> "CallGuard":
        for mode in self.modes:
            mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        for mode in reversed(self.modes):
            mode.__exit__(*error)
