"""One row of one head through its block, with every operand: from the stream, and back to it.

    x → norm → q, k, v → attention → merged heads → W_O → x + … → feed-forward → x + …

What a trace keeps (the stream, q, k, v) is taken from it; what lies between is computed from that
in float64. How far each result lies from what the model computed is part of the answer.
"""

from dataclasses import dataclass, field
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.errors import TraceError
from glassformer.functional.arithmetic import RowArithmetic
from glassformer.functional.positions.rotary import Layout
from glassformer.layers import (
    Block,
    CrossAttention,
    FeedForward,
    LatentAttention,
    MixtureOfExperts,
    SelfAttention,
)
from glassformer.layers.feed_forward import ACTIVATIONS
from glassformer.models.stack import Stack
from glassformer.tracing import Site, Trace
from glassformer.tracing.norm_form import NormForm
from glassformer.tracing.stream import Part, Stream


@dataclass(eq=False, frozen=True)
class Projection:
    """A head's slice of a matrix: weight · input + bias."""

    weight: Float[Tensor, "N M"]
    bias: Float[Tensor, " N"] | None

    def __call__(self, x: Float[Tensor, "... M"]) -> Float[Tensor, "... N"]:
        y = x @ self.weight.mT
        return y if self.bias is None else y + self.bias


@dataclass(eq=False, frozen=True)
class Rotation:
    """The angles at the query's position."""

    cos: Float[Tensor, " P"]
    sin: Float[Tensor, " P"]
    layout: Layout


@dataclass(eq=False, frozen=True, kw_only=True)
class FeedForwardRow:
    """The feed-forward network at one position."""

    norm: NormForm | None  # before it
    after: NormForm | None  # after its residual
    input: Float[Tensor, " C"]  # the stream that it reads
    read: Float[Tensor, " C"]  # normed
    up: Float[Tensor, " F"]  # before the activation
    gate: Float[Tensor, " F"] | None
    hidden: Float[Tensor, " F"]
    added: Float[Tensor, " C"]  # recorded
    end: Float[Tensor, " C"]  # the stream after it
    module: FeedForward


@dataclass(eq=False, frozen=True, kw_only=True)
class BlockRow:
    """Everything that one row of one head is made of, in float64."""

    site: Site
    head: int
    key_head: int
    query: int
    row: RowArithmetic
    place: Literal["pre", "post"]
    norm: NormForm | None  # before attention
    after_norm: NormForm | None  # after its residual
    x: Float[Tensor, " C"]  # the stream at the query
    read: Float[Tensor, " C"]  # what attention reads of it
    inputs: Float[Tensor, "S X"]  # what the keys and values are made of
    q: Projection
    k: Projection
    v: Projection
    projected: Float[Tensor, " D"]  # W_Q · read + b
    q_norm: NormForm | None
    k_norm: NormForm | None
    rotation: Rotation | None
    outs: Float[Tensor, "H E"]  # of all heads, recorded
    o: Projection  # of this head; the bias is the layer's
    rest: Float[Tensor, " C"]  # what the other heads add
    added: Float[Tensor, " C"]  # recorded
    end: Float[Tensor, " C"]  # the stream after it
    feed_forward: FeedForwardRow | None  # None: cross-attention is next, or a mixture of experts
    differences: dict[str, tuple[float, float]] = field(default_factory=dict)

    def changed(self) -> list[str]:
        """The results that are not what their operands give: an intervention lies between."""
        bound = torch.finfo(self.site.q.dtype).eps ** 0.5
        return [n for n, (apart, size) in self.differences.items() if apart > bound * size]


def read_block_row(model: nn.Module, trace: Trace, name: str, *, head: int, query: int) -> BlockRow:
    """Every operand of one row, of a recorded run of one of our models.

    >>> import glassformer as gf
    >>> model = gf.load("reader")
    >>> with gf.watch(model, outputs=True, residual=True) as trace:
    ...     _ = gf.embed(model, ["The cat sat."])
    >>> row = read_block_row(model, trace, "encoder.0.self", head=1, query=2)
    >>> row.x.shape, row.changed()
    (torch.Size([256]), [])
    """
    site = trace[name]
    check_row(site, head, query)
    stack, stream, block = _find_block(model, trace, name)
    is_cross = name.endswith(".cross")
    layer = block.cross if is_cross else block.attention
    assert not isinstance(layer, LatentAttention)  # as `_find_block` makes sure
    module = block.cross_norm if is_cross else block.attention_norm
    norm = None if isinstance(module, nn.Identity) else _form(module)  # the first may have none
    is_pre = block.norm_place == "pre"
    states, part = _read_state(stream, lambda part: part.site == name)
    x = states[query]
    row = site.row(head, query)
    key_head = head // (site.n_heads // site.k.shape[1])
    before = norm if is_pre else None
    read = x if before is None else before(x)
    if is_cross:
        inputs = _read_context(model, trace)
    else:
        inputs = states if before is None else before(states)
    q, k, v, whole = _slice_weights(layer, head, key_head)
    rotation = None if is_cross else _find_rotation(stack, part.layer, query)
    q_norm, k_norm = (
        (_form(layer.q_norm), _form(layer.k_norm))
        if isinstance(layer, SelfAttention) and layer.has_head_norm
        else (None, None)
    )
    outs = (site.head_outputs() if site.out is None else site.out)[0, :, query].double().cpu()
    o = Projection(whole.weight[:, _slice(head, outs.shape[1])], whole.bias)
    others = outs.clone()
    others[head] = 0.0
    rest = others.flatten() @ whole.weight.mT
    added = part.value[0, query].double().cpu()
    after_norm = None if is_pre else norm
    end = x + added
    ended = end if after_norm is None else after_norm(end)
    projected = q(read)
    found = BlockRow(
        site=site,
        head=head,
        key_head=key_head,
        query=query,
        row=row,
        place="pre" if is_pre else "post",
        norm=before,
        after_norm=after_norm,
        x=x,
        read=read,
        inputs=inputs,
        q=q,
        k=k,
        v=v,
        projected=projected,
        q_norm=q_norm,
        k_norm=k_norm,
        rotation=rotation,
        outs=outs,
        o=o,
        rest=rest,
        added=added,
        end=ended,
        feed_forward=None
        if (block.has_cross and not is_cross) or isinstance(block.feed_forward, MixtureOfExperts)
        else _read_feed_forward(block, stream, part, query),
    )
    found.differences.update(_measure(found))
    return found


def check_row(site: Site, head: int, query: int) -> None:
    """A head and a query that the site has, or a sentence."""
    L = site.shape[2]
    if not 0 <= query < L:
        raise TraceError(f"{site.name} has queries 0 … {L - 1}; got query={query}.")
    if head not in site.head_numbers:
        raise TraceError(f"{site.name} has heads 0 … {site.n_heads - 1}; got head={head}.")


def rotate_row(x: Float[Tensor, " D"], rotation: Rotation) -> Float[Tensor, " D"]:
    """A vector turned by the angles of its position: a · cos − b · sin, b · cos + a · sin."""
    n = 2 * len(rotation.cos)
    if rotation.layout == "half":
        a, b = x[:n].chunk(2)
    else:
        a, b = x[0:n:2], x[1:n:2]
    cos, sin = rotation.cos, rotation.sin
    turned = torch.stack((a * cos - b * sin, b * cos + a * sin))
    turned = turned.flatten() if rotation.layout == "half" else turned.mT.flatten()
    return torch.cat((turned, x[n:]))


def _find_block(model: nn.Module, trace: Trace, name: str) -> tuple[Stack, Stream, Block]:
    stack, layer, _ = name.split(".", 2)
    found = getattr(model, stack, None)
    if not isinstance(found, Stack):
        raise TraceError(f"The steps of {name} need one of our models; its block is not known.")
    block = found.blocks[int(layer)]
    assert isinstance(block, Block)
    if isinstance(block.attention, LatentAttention):
        raise TraceError(
            f"The steps of {name} are known for attention with projections of its own for q, k and "
            "v; this model's attention is latent."
        )
    return found, trace.residual(stack), block


def _read_state(stream: Stream, is_wanted) -> tuple[Float[Tensor, "L C"], Part]:  # type: ignore[no-untyped-def]
    """The state that a part reads, at every position, and the part."""
    states = stream.states()
    for part, (_, state) in zip(stream.parts, states, strict=False):
        if is_wanted(part):
            return state[0].double().cpu(), part
    raise TraceError(f"The part is not in the stream of {stream.name}.")


def _read_context(model: nn.Module, trace: Trace) -> Float[Tensor, "S X"]:
    end = trace.residual("encoder").end[0].double().cpu()
    encoder = model.encoder
    assert isinstance(encoder, Stack)
    return _form(encoder.final_norm)(end) if encoder.config.norms.final else end


def _form(norm: nn.Module) -> NormForm:
    weight, bias = (getattr(norm, name, None) for name in ("weight", "bias"))
    return NormForm(
        is_centred=isinstance(norm, nn.LayerNorm),
        eps=float(norm.eps),  # type: ignore[arg-type]
        gain=None if weight is None else weight.detach().double().cpu(),
        bias=None if bias is None else bias.detach().double().cpu(),
    )


def _slice_weights(
    layer: SelfAttention | CrossAttention, head: int, key_head: int
) -> tuple[Projection, Projection, Projection, Projection]:
    """The slices of W_Q, W_K and W_V that a head uses, and the whole of W_O."""
    H, K, D = layer.n_heads, layer.n_kv_heads, layer.head_dim
    if isinstance(layer, SelfAttention):
        places = [(layer.qkv, head), (layer.qkv, H + key_head), (layer.qkv, H + K + key_head)]
    else:
        places = [(layer.q, head), (layer.kv, key_head), (layer.kv, K + key_head)]
    q, k, v = (_project(linear, _slice(n, D)) for linear, n in places)
    return q, k, v, _project(layer.out, slice(None))


def _project(linear: nn.Linear, rows: slice) -> Projection:
    bias = None if linear.bias is None else linear.bias.detach()[rows].double().cpu()
    return Projection(linear.weight.detach()[rows].double().cpu(), bias)


def _slice(n: int, width: int) -> slice:
    return slice(n * width, (n + 1) * width)


def _find_rotation(stack: Stack, layer: int, query: int) -> Rotation | None:
    if stack.config.positions.kind != "rotary":
        return None
    rotary = stack.config.rotary(local=layer not in stack.config.global_layers)
    cos, sin = rotary.tables(torch.tensor([query]))  # rounded as the model's are
    return Rotation(cos[0].double(), sin[0].double(), stack.config.positions.layout)


def _read_feed_forward(block: Block, stream: Stream, after: Part, query: int) -> FeedForwardRow:
    states, part = _read_state(stream, lambda p: p.kind == "mlp" and p.layer == after.layer)
    module, norm = block.feed_forward, _form(block.feed_forward_norm)
    assert isinstance(module, FeedForward)
    is_pre = block.norm_place == "pre"
    x = states[query]
    read = norm(x) if is_pre else x
    up, gate = _project(module.up, slice(None))(read), None
    if module.gated:
        gate, up = up.chunk(2)
    act = ACTIVATIONS[module.activation]
    added = part.value[0, query].double().cpu()
    return FeedForwardRow(
        norm=norm if is_pre else None,
        after=None if is_pre else norm,
        input=x,
        read=read,
        up=up,
        gate=gate,
        hidden=act(up) if gate is None else act(gate) * up,
        added=added,
        end=x + added if is_pre else norm(x + added),
        module=module,
    )


def _measure(found: BlockRow) -> dict[str, tuple[float, float]]:
    """How far what follows from the operands lies from what was recorded, and its size."""
    row, site = found.row, found.site
    assert row.q is not None and row.k is not None and row.v is not None and row.out is not None
    q = found.projected
    if found.q_norm is not None:
        q = found.q_norm(q)
    if found.rotation is not None:
        q = rotate_row(q, found.rotation)
    own = None if site.name.endswith(".cross") else found.query
    pairs = {"q": (q, row.q)}
    if own is not None:
        k = found.k(found.inputs[own])
        k = k if found.k_norm is None else found.k_norm(k)
        pairs["k"] = (k if found.rotation is None else rotate_row(k, found.rotation), row.k[own])
    else:
        pairs["k"] = (found.k(found.inputs), row.k)
    pairs["v"] = (found.v(found.inputs), row.v)
    pairs["out"] = (row.out, found.outs[found.head])
    pairs["added"] = (found.o(found.outs[found.head]) + found.rest, found.added)
    if found.feed_forward is not None:
        network = found.feed_forward
        down = _project(network.module.down, slice(None))
        pairs["ff_input"] = (found.end, network.input)
        pairs["ff_added"] = (down(network.hidden), network.added)
    return {
        name: (float((a - b.cpu()).abs().max()), float(b.abs().max()))
        for name, (a, b) in pairs.items()
    }
