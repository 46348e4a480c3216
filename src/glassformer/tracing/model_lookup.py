"""Which model is meant: the one that torch.compile, PEFT or a module of one's own wraps.

The modules are listed once; everything that asks about them shares the `ModuleTree`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from torch import nn

from glassformer.errors import TraceError
from glassformer.models import Decoder, Encoder, EncoderDecoder, VisionEncoder
from glassformer.models.module_list import find_paths

OURS = (Encoder, Decoder, EncoderDecoder, VisionEncoder)


class ModuleTree:
    """The modules of a model, parents before their children, by path.

    >>> tree = ModuleTree(nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU())))
    >>> list(tree.paths.values())
    ['', '0', '1', '1.0']
    >>> [tree.paths[module] for module in tree.above([tree.model[1][0]])]
    ['1.0', '1', '']
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.paths = find_paths(model)
        self.kinds: dict[type[nn.Module], list[nn.Module]] = {}  # the modules of each class
        kinds = self.kinds
        for module in self.paths:
            if (kind := type(module)) in kinds:
                kinds[kind].append(module)
            else:
                kinds[kind] = [module]

    @cached_property
    def _children(self) -> dict[nn.Module, tuple[nn.Module, ...]]:
        return {
            module: tuple([part for part in parts.values() if part is not None])
            for module in self.paths
            if (parts := module._modules)
        }

    @cached_property
    def _parents(self) -> dict[nn.Module, list[nn.Module]]:
        parents: dict[nn.Module, list[nn.Module]] = {module: [] for module in self.paths}
        for module, children in self._children.items():
            for child in children:
                parents[child].append(module)
        return parents

    def below(self, modules: Iterable[nn.Module]) -> dict[nn.Module, None]:
        """These modules and all of their parts."""
        return _reach(modules, self._children)

    def above(self, modules: Iterable[nn.Module]) -> dict[nn.Module, None]:
        """These modules and everything that they are a part of."""
        return _reach(modules, self._parents)

    def of(self, model: nn.Module) -> "ModuleTree":
        """The tree of a part; paths are relative to it."""
        return self if model is self.model else ModuleTree(model)


def _reach(
    modules: Iterable[nn.Module], edges: Mapping[nn.Module, Sequence[nn.Module]]
) -> dict[nn.Module, None]:
    reached = dict.fromkeys(modules)
    waiting = list(reached)
    while waiting:
        for module in edges.get(waiting.pop(), ()):
            if module not in reached:
                reached[module] = None
                waiting.append(module)
    return reached


def has_part(module: nn.Module, wanted: Collection[nn.Module]) -> bool:
    """Whether a module or one of its parts is among these; it looks no further than to the first.

    >>> layers = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU()))
    >>> has_part(layers, {layers[1][0]}), has_part(layers[0], {layers[1][0]})
    (True, False)
    """
    seen: set[nn.Module] = set()
    waiting = [module]
    while waiting:
        part = waiting.pop()
        if part in wanted:
            return True
        if part not in seen:
            seen.add(part)
            waiting += [each for each in part._modules.values() if each is not None]
    return False


def find_model(tree: ModuleTree) -> nn.Module | None:
    """The outermost model of ours or of transformers; None for nn.MultiheadAttention alone."""
    given = type(tree.model).__name__
    foreign = _foreign_kinds(tree.kinds)
    models = {kind for kind in tree.kinds if issubclass(kind, (*OURS, *foreign))}
    outermost: list[nn.Module] = []
    inside: dict[nn.Module, None] = {}
    if type(tree.model) in models:
        outermost, models = [tree.model], set()
    for module in tree.paths if models else ():
        if type(module) in models and module not in inside:
            outermost.append(module)
            inside |= tree.below([module])
    if len(outermost) > 1:
        raise TraceError(
            f"watch takes one model; {given} holds {len(outermost)}: "
            f"{', '.join(sorted(type(module).__name__ for module in outermost))}. Watch each by "
            "itself: contexts can be nested."
        )
    has_torch = any(issubclass(kind, nn.MultiheadAttention) for kind in tree.kinds)
    if outermost and not isinstance(outermost[0], foreign):
        return outermost[0]
    if outermost:
        kinds = {type(part) for part in inside} if inside else set(tree.kinds)
        return _check_attention(outermost[0], kinds, has_torch)
    if has_torch:
        return None
    if _has_parts_of_transformers(tree):
        if isinstance(tree.model, nn.ModuleList | nn.ModuleDict):
            raise TraceError(
                f"watch takes a module that is called; got {given}, which only holds "
                f"{len(tree.model)}. Watch each by itself: contexts can be nested."
            )
        return tree.model
    raise TraceError(
        f"watch takes a model of glassformer or transformers, or a module with "
        f"nn.MultiheadAttention; {given} is none of these. Use record for operands of your own."
    )


def _has_parts_of_transformers(tree: ModuleTree) -> bool:
    """Whether it is a stage of a pipeline: layers of transformers, or what is exported of them."""
    from glassformer.tracing.site_names import class_name, sounds_like_attention

    for module in tree.paths:
        kind = type(module)
        if kind.__module__ == "torch.export.unflatten" and sounds_like_attention(
            class_name(module)
        ):
            return True
        if kind.__module__.startswith("transformers.") and sounds_like_attention(kind.__name__):
            return True
    return False


def _foreign_kinds(kinds: Iterable[type]) -> tuple[type, ...]:
    """PreTrainedModel, if a part is from transformers or is built on it."""
    parents = {parent for kind in kinds for parent in kind.__mro__}
    if not any(kind.__module__.partition(".")[0] == "transformers" for kind in parents):
        return ()
    from transformers import PreTrainedModel

    return (PreTrainedModel,)


def _check_attention(
    model: nn.Module, kinds: set[type[nn.Module]], has_torch: bool
) -> nn.Module | None:
    """A model of transformers; None where its only attention is PyTorch's module."""
    from glassformer.tracing.site_names import sounds_like_attention
    from glassformer.tracing.sources.transformers_interface import uses_interface

    if any(map(uses_interface, kinds)):
        return model
    if any(sounds_like_attention(k.__name__) and k is not nn.MultiheadAttention for k in kinds):
        return model
    if has_torch:
        return None
    raise TraceError(f"{type(model).__name__} has no attention: there is nothing to watch.")
