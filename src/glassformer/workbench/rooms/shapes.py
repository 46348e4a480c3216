"""Shapes: a model's architecture as nested boxes, traced on the meta device."""

from collections.abc import Sequence
from typing import Any

from glassformer.errors import ConfigError
from glassformer.models import PRESETS, Config
from glassformer.models.shape_costs import BYTES, Cost, measure_costs
from glassformer.models.shapes import Section, Shape, ShapeStep, ShapeTrace, shapes
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.wire.shapes import ShapesRequest

_FIELDS = {
    "dim": "dim",
    "heads": "n_heads",
    "kv_heads": "n_kv_heads",
    "layers": "n_layers",
    "hidden_dim": "hidden_dim",
}
_TRACED = 2  # blocks of a stack: those after the second are like it


def describe_shapes(asked: ShapesRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """The boxes of a model, of another architecture, or of one with other sizes."""
    config = _read_config(asked, memory)
    progress(0.2)
    depths = _count_blocks(config)
    short = _shorten(config)
    trace = shapes(
        short,
        name=asked.preset or asked.model,
        batch=asked.batch,
        length=asked.length,
        context=asked.context if config.family == "encoder_decoder" else None,
    )
    progress(0.9)
    first = next(step for step in trace.steps if step.operation == "scores")
    n_cached, k_dim, v_dim = config.cache_shape
    query, key = first.inputs[0].numbers, trace.sizes
    return {
        "name": trace.name,
        "family": trace.family,
        "letters": trace.sizes,
        "sizes": {
            "batch": query[0],
            "length": key["L"],
            "context": key.get("S"),
            "dim": config.dim,
            "heads": config.n_heads,
            "kv_heads": config.n_kv_heads,
            "head_dim": config.head_dim,
            "layers": config.n_layers,
            "hidden_dim": config.hidden_dim,
        },
        "presets": list(PRESETS),
        "cache_bytes_per_token": BYTES * depths.get("decoder", 0) * n_cached * (k_dim + v_dim),
        "model": _Drawing(trace, depths, _count_blocks(short)).draw(),
    }


def _count_blocks(config: Config) -> dict[str, int]:
    """How many blocks each stack has."""
    if config.family == "encoder_decoder":
        return {"encoder": config.n_layers, "decoder": config.decoder_layers}
    return {config.family: config.n_layers}


def _shorten(config: Config) -> Config:
    """The same with few blocks: a run through all of them would show the same again."""
    has_dense = config.experts is not None and config.experts.dense_layers
    if config.global_layers or has_dense or not config.norms.first:
        return config  # blocks differ
    depths = {stack: min(_TRACED, n) for stack, n in _count_blocks(config).items()}
    if config.family == "encoder_decoder":
        return config.replace(n_layers=depths["encoder"], n_decoder_layers=depths["decoder"])
    return config.replace(n_layers=depths[config.family])


def _read_config(asked: ShapesRequest, memory: Memory) -> Config:
    """The config of the model or preset, with the sizes that were asked for."""
    config, changes = choose_config(asked, memory)
    return config.replace(**changes)


def choose_config(asked: ShapesRequest, memory: Memory) -> tuple[Config, dict[str, int | None]]:
    """The config of the model or preset, and what is to be replaced in it."""
    if asked.preset is not None and asked.preset not in PRESETS:
        raise ConfigError(f"Presets are {', '.join(PRESETS)}; got {asked.preset!r}.")
    config = PRESETS[asked.preset] if asked.preset else memory.model(asked.model).config
    changes: dict[str, int | None] = {
        field: size
        for name, field in _FIELDS.items()
        if (size := getattr(asked, name)) is not None and size != getattr(config, field)
    }
    if changes.keys() & {"dim", "n_heads"}:  # a head is as wide as its share, unless it was not
        is_usual = config.head_dim * config.n_heads == config.dim
        changes |= {"head_dim": None} if is_usual else {}
    if "n_heads" in changes and "n_kv_heads" not in changes:
        is_plain = config.n_kv_heads == config.n_heads
        changes |= {"n_kv_heads": None} if is_plain else {}
    if "n_layers" in changes and config.n_decoder_layers is not None:
        changes["n_decoder_layers"] = changes["n_layers"]
    if asked.length is not None or asked.context is not None:
        changes["max_len"] = max(config.max_len, asked.length or 1, asked.context or 1)
    return config, changes


class _Drawing:
    """Builds the boxes of a trace, each with the costs of all steps inside."""

    def __init__(
        self, trace: ShapeTrace, depths: dict[str, int], traced_depths: dict[str, int]
    ) -> None:
        self.trace, self.depths, self.traced_depths = trace, depths, traced_depths
        costs = measure_costs(trace)
        self.costs = {id(step): cost for step, cost in zip(trace.steps, costs, strict=True)}
        self.by_site: dict[str, Cost] = {}
        for step, cost in zip(trace.steps, costs, strict=True):
            self.by_site[step.site] = self.by_site.get(step.site, Cost()) + cost

    def draw(self) -> dict[str, Any]:
        stacks: dict[str, list[dict[str, Any]]] = {}
        for section in self.trace.sections():
            stacks.setdefault(section.stack, []).append(self._draw_section(section))
        children = [
            box
            for stack, boxes in stacks.items()
            for box in ([_box(stack, "stack", stack, boxes)] if stack else boxes)
        ]
        return _box("model", "model", self.trace.name, children)

    def _draw_section(self, section: Section) -> dict[str, Any]:
        name = f"{section.stack}.{section.part}".strip(".")
        if section.part != "block":
            steps = self._draw_steps(name, section.steps)
            return _box(name, "section", section.part, steps)
        name = f"{section.stack}.{section.blocks[0]}"
        sites = dict.fromkeys(step.site for step in section.steps)
        parts = []
        for site in sites:
            own = [step for step in section.steps if step.site == site]
            part = site.rpartition(".")[2]
            parts.append(_box(site, "part", part, self._draw_steps(site, own)))
        block = _box(name, "block", "block", parts)
        blocks = list(section.blocks)
        n_traced = self.traced_depths[section.stack]
        if blocks[-1] == n_traced - 1:
            blocks += range(n_traced, self.depths[section.stack])
        traced = [min(n, n_traced - 1) for n in blocks]
        inside = [
            f"{section.stack}.{n}.{site.rpartition('.')[2]}" for n in traced for site in sites
        ]
        cost = sum((self.by_site[site] for site in inside), Cost())
        return {**block, "count": len(blocks), "blocks": blocks, "cost": _plain(cost)}

    def _draw_steps(self, place: str, steps: Sequence[ShapeStep]) -> list[dict[str, Any]]:
        return [self._draw_step(f"{place}.{n}", step) for n, step in enumerate(steps)]

    def _draw_step(self, name: str, step: ShapeStep) -> dict[str, Any]:
        box = _box(name, "step", step.operation, [])
        owner = step.parameters[0].name.split(".")[-2:-1] if step.parameters else []
        return {
            **box,
            "detail": step.note if step.note and step.note != "tied" else "".join(owner),
            "cost": _plain(self.costs[id(step)]),
            "inputs": [_name_shape(shape) for shape in step.inputs],
            "outputs": [_name_shape(shape) for shape in step.outputs],
            "parameters": [_name_shape(shape) for shape in step.parameters],
            "product": _find_product(step),
            "is_held": step.held,
            "is_tied": step.note == "tied",
        }


def _box(name: str, kind: str, title: str, children: list[dict[str, Any]]) -> dict[str, Any]:
    cost = sum((Cost(**child["cost"]) for child in children), Cost())
    return {
        "id": name,
        "kind": kind,
        "name": title,
        "detail": "",
        "count": 1,
        "blocks": [],
        "cost": _plain(cost),
        "inputs": [],
        "outputs": [],
        "parameters": [],
        "product": None,
        "is_held": True,
        "is_tied": False,
        "children": children,
    }


def _find_product(step: ShapeStep) -> dict[str, Any] | None:
    """The matrix product of a step, in letters."""
    if not step.outputs:
        return None
    left, out = list(step.inputs[0].letters), list(step.outputs[0].letters)
    if step.operation == "linear":
        right = list(step.parameters[0].letters)
    elif step.operation in ("scores", "attend"):
        right = list(step.inputs[1].letters)
    else:
        return None
    return {"left": left, "right": right, "out": out, "summed": left[-1]}


def _name_shape(shape: Shape) -> dict[str, Any]:
    return {
        "name": shape.name,
        "letters": list(shape.letters),
        "numbers": list(shape.numbers),
    }


def _plain(cost: Cost) -> dict[str, int]:
    return {"parameters": cost.parameters, "flops": cost.flops, "bytes": cost.bytes}
