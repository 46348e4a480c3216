"""The shape of everything in a model, step by step, as a run of it on the "meta" device shows.

Numbers come from a run of the model itself, letters from a run of its twin: the same architecture
with sizes that are all different, in which L cannot be mistaken for S, nor H for K.
"""

import re
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import torch

from glassformer.errors import ConfigError, ShapeError
from glassformer.models.call_recording import Call, CallRecorder, Value
from glassformer.models.config import Config
from glassformer.models.encoder import Encoder
from glassformer.models.encoder_decoder import EncoderDecoder
from glassformer.models.presets import PRESETS, build
from glassformer.models.variants import Latent

LETTERS = (*"BLSCHKDEPRQFNkMV", "max_len")
BATCH, LENGTH, CONTEXT = 2, 10, 14
NEVER_HELD = ("scores", "softcap", "bias", "mask", "softmax")

# Made of primes, so that no two are alike, and larger than any number of classes or buckets.
_TWIN = {
    "B": 10_007,
    "L": 10_009,
    "S": 10_037,
    "C": 2 * 10_039,  # even: half of it are sines
    "H": 3 * 10_061,
    "K": 10_061,
    "D": 2 * 10_067,  # even: pairs are rotated
    "F": 10_069,
    "N": 10_103,
    "k": 10_099,  # less than N
    "M": 10_093,
    "E": 10_111,
    "P": 2 * 5_077,  # even, and less than D
    "R": 10_133,
    "Q": 10_139,
    "V": 10_079,
    "max_len": 1_000_003,
}
_PRODUCTS = {
    "H·D": _TWIN["H"] * _TWIN["D"],
    "2K·D": 2 * _TWIN["K"] * _TWIN["D"],
    "(H+2K)·D": (_TWIN["H"] + 2 * _TWIN["K"]) * _TWIN["D"],
    "D/2": _TWIN["D"] // 2,
    "P/2": _TWIN["P"] // 2,
    "D−P": _TWIN["D"] - _TWIN["P"],
    "R+P": _TWIN["R"] + _TWIN["P"],
    "H·E": _TWIN["H"] * _TWIN["E"],
    "H·(D−P+E)": _TWIN["H"] * (_TWIN["D"] - _TWIN["P"] + _TWIN["E"]),
    "2F": 2 * _TWIN["F"],
}
_TEXTS = {size: text for text, size in (_TWIN | _PRODUCTS).items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """A tensor's shape in letters and in numbers; a size without a letter is a number in both."""

    name: str
    letters: tuple[str, ...]
    numbers: tuple[int, ...]
    step: int | None = None  # that made it; none for what is given


@dataclass(frozen=True, kw_only=True, slots=True)
class ShapeStep:
    """One operation at one place.

    `held` is False for what only the definition of attention forms: a fused kernel goes through
    scores and weights tile by tile, and never holds them.
    """

    site: str
    operation: str
    module: str
    note: str
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    parameters: tuple[Shape, ...]
    held: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """Steps that belong together: of one block and of all blocks like it, or around the blocks."""

    stack: str  # "encoder" or "decoder"; of a head none
    part: str  # "embedding", "block", "final", or the head's name
    blocks: tuple[int, ...]
    steps: tuple[ShapeStep, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ShapeTrace:
    """Every step of a model, in the order of the run."""

    name: str
    family: str
    sizes: dict[str, int]  # of each letter that occurs
    steps: tuple[ShapeStep, ...]

    def sections(self) -> list[Section]:
        """The steps in parts, a block in full only where no earlier one is like it."""
        parts: dict[tuple[str, str, int], list[ShapeStep]] = {}
        for step in self.steps:
            parts.setdefault(_parse_site(step.site), []).append(step)
        alike: dict[Any, list[tuple[str, str, int]]] = {}
        for place, steps in parts.items():
            alike.setdefault((*place[:2], *map(_without_numbers, steps)), []).append(place)
        return [
            Section(
                stack=stack,
                part=part,
                blocks=tuple(i for *_, i in places if part == "block"),
                steps=tuple(parts[places[0]]),
            )
            for (stack, part, *_), places in alike.items()
        ]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def shapes(
    model: Config | str,
    *,
    name: str | None = None,
    batch: int | None = None,
    length: int | None = None,
    context: int | None = None,
) -> ShapeTrace:
    """Run a config's or a preset's model without memory and tell every shape on the way.

    `length` is L, of the tokens, and `context` is S, of what an encoder-decoder translates.

    >>> trace = shapes("gpt-2", batch=1, length=5)
    >>> step = next(s for s in trace.steps if s.operation == "scores")
    >>> step.site, step.outputs[0].letters, step.outputs[0].numbers
    ('decoder.0.self', ('B', 'H', 'L', 'L'), (1, 12, 5, 5))
    """
    config = _preset(model) if isinstance(model, str) else model
    name = name or (model if isinstance(model, str) else config.family)
    if config.family == "vision":
        raise ConfigError("Shapes are traced for models that read tokens; this one reads images.")
    batch = BATCH if batch is None else batch
    length = min(LENGTH, config.max_len) if length is None else length
    if config.family == "encoder_decoder":
        context = min(CONTEXT, config.max_len) if context is None else context
    elif context is not None:
        raise ConfigError(
            f"Only an encoder-decoder has a context beside its tokens; got context={context} for "
            f"family={config.family!r}. Leave it out."
        )
    for said, size in (("batch", batch), ("length", length), ("context", context)):
        if size is not None and size < 1:
            raise ConfigError(f"{said} must be at least 1; got {said}={size}.")
    try:
        calls = _run(config, batch, length, context)
    except (RuntimeError, TypeError) as error:
        if "verflow" not in str(error):
            raise
        raise ShapeError(
            f"A tensor has fewer than 2⁶³ bytes; got batch={batch}, length={length}, "
            f"context={context}. Use smaller ones."
        ) from None
    twins = _run(_twin(config), _TWIN["B"], _TWIN["L"], context and _TWIN["S"])
    steps = tuple(_step(call, twin) for call, twin in zip(calls, twins, strict=True))
    return ShapeTrace(name=name, family=config.family, sizes=_sizes(steps), steps=steps)


def _preset(name: str) -> Config:
    if name not in PRESETS:
        raise ConfigError(f"Presets are {', '.join(PRESETS)}; got {name!r}.")
    return PRESETS[name]


def _twin(config: Config) -> Config:
    experts = config.experts
    if experts is not None:
        experts = replace(
            experts,
            n_experts=_TWIN["N"],
            n_active=_TWIN["k"],
            hidden_dim=_TWIN["M"],
            n_groups=1,
            n_active_groups=1,
        )
    latent = config.latent
    if latent is not None:
        latent = Latent(
            kv_dim=_TWIN["R"],
            rotary_dim=_TWIN["P"],
            value_dim=_TWIN["E"],
            q_dim=None if latent.q_dim is None else _TWIN["Q"],
        )
    return config.replace(
        experts=experts,
        latent=latent,
        vocab_size=_TWIN["V"],
        dim=_TWIN["C"],
        n_heads=_TWIN["H"],
        n_kv_heads=_TWIN["K" if latent is None else "H"],
        head_dim=_TWIN["D"],
        hidden_dim=_TWIN["F"],
        max_len=_TWIN["max_len"],
    )


@lru_cache(maxsize=16)  # one twin serves all lengths of its model
def _run(config: Config, batch: int, length: int, context: int | None) -> tuple[Call, ...]:
    model = build(config, device="meta").eval()
    recorder = CallRecorder(model)
    with torch.device("meta"), torch.no_grad():
        tokens = torch.zeros(batch, length, dtype=torch.long)
        recorder.watch(tokens, "tokens")
        if isinstance(model, EncoderDecoder):
            source = torch.zeros(batch, context or 1, dtype=torch.long)
            recorder.watch(source, "source")
            with recorder:
                model(source, tokens)
        else:
            with recorder:
                hidden = model(tokens)
                if isinstance(model, Encoder):
                    _run_heads(model, hidden)
    return tuple(recorder.finish())


def _run_heads(model: Encoder, hidden: torch.Tensor) -> None:
    if hasattr(model, "head"):
        model.fill(hidden)
    if hasattr(model, "classifier"):
        model.classify(hidden)


def _step(call: Call, twin: Call) -> ShapeStep:
    assert (call.site, call.operation, call.module) == (twin.site, twin.operation, twin.module)
    return ShapeStep(
        site=call.site,
        operation=call.operation,
        module=call.module,
        note=call.note,
        inputs=_shapes(call.inputs, twin.inputs),
        outputs=_shapes(call.outputs, twin.outputs),
        parameters=_shapes(call.parameters, twin.parameters),
        held=call.operation not in NEVER_HELD,
    )


def _shapes(values: list[Value], twins: list[Value]) -> tuple[Shape, ...]:
    shaped = []
    for value, twin in zip(values, twins, strict=True):
        pairs = zip(value.shape, twin.shape, strict=True)
        letters = tuple(_name_size(size, large) for size, large in pairs)
        name = "logits" if value.name == "x" and letters[-1] == "V" else value.name
        shaped.append(Shape(name=name, letters=letters, numbers=value.shape, step=value.call))
    return tuple(shaped)


def _name_size(size: int, large: int) -> str:
    """The letter of a size by that of the twin; shared experts have several times M."""
    n, rest = divmod(large, _TWIN["M"])
    if not rest and 1 <= n < 1000:
        return "M" if n == 1 else f"{n}M"
    return _TEXTS.get(large, str(size))


def _sizes(steps: tuple[ShapeStep, ...]) -> dict[str, int]:
    found = {
        letter: size
        for step in steps
        for shape in (*step.inputs, *step.outputs, *step.parameters)
        for letter, size in zip(shape.letters, shape.numbers, strict=True)
    }
    return {letter: found[letter] for letter in LETTERS if letter in found}


def _parse_site(site: str) -> tuple[str, str, int]:
    """The stack, the part of it, and the number of the block."""
    stack, _, rest = site.rpartition(".")
    block = re.fullmatch(r"(.+)\.(\d+)", stack)
    return (block[1], "block", int(block[2])) if block else (stack, rest, 0)


def _without_numbers(step: ShapeStep) -> str:
    """What makes two blocks alike: everything but which block it is."""
    part = step.site.rpartition(".")[2]
    shapes = [
        [(re.sub(r"\.\d+\.", ".", shape.name), shape.letters, shape.numbers) for shape in group]
        for group in (step.inputs, step.outputs, step.parameters)
    ]
    module = re.sub(r"\.\d+\b", "", step.module)
    return repr((part, step.operation, step.note, module, shapes))
