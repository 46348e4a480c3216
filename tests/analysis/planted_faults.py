"""Tiny models of transformers, and faults as they happen when a model moves to another engine.

Each fault changes one thing and says where it lies: the site or part, the operands, and the kind
of difference where numbers can show it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from glassformer.tracing import Trace, watch

LENGTH, V = 96, 53
SIZES = {
    "vocab_size": V,
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 48,
    "max_position_embeddings": 128,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "pad_token_id": 1,
}
GPT = {"vocab_size": V, "n_embd": 64, "n_layer": 4, "n_head": 4, "n_positions": 128}
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", "LlamaForCausalLM", SIZES),
    "qwen": ("Qwen2Config", "Qwen2ForCausalLM", SIZES),
    "gemma": (
        "Gemma2Config",
        "Gemma2ForCausalLM",
        {**SIZES, "attn_logit_softcapping": 1.0, "sliding_window": 200},
    ),
    "mistral": ("MistralConfig", "MistralForCausalLM", {**SIZES, "sliding_window": 8}),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", GPT),
}


def make_model(name: str, **changed: Any) -> Any:
    """A model with weights large enough that attention is not even."""
    config, kind, sizes = MODELS[name]
    torch.manual_seed(0)
    model = getattr(transformers, kind)(getattr(transformers, config)(**{**sizes, **changed}))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(noise, alpha=0.15 if parameter.ndim > 1 else 0.1)
    return model.eval()


def tokens() -> Tensor:
    return torch.randint(3, V, (1, LENGTH), generator=torch.Generator().manual_seed(2))


def trace_model(model: Any, **inputs: Any) -> Trace:
    with watch(model, outputs=True, residual=True) as trace, torch.no_grad():
        model(tokens(), **inputs)
    return trace


@dataclass(kw_only=True)
class Fault:
    """Something that goes wrong, and what numbers can say about it."""

    model: str
    plant: Callable[[Any], Any]  # changes a model, and may return inputs or a context
    where: str
    operands: tuple[str, ...]
    kind: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    changed: dict[str, Any] = field(default_factory=dict)  # in the config

    def run(self) -> Trace:
        model = make_model(self.model, **self.changed)
        with torch.no_grad():
            planted = self.plant(model)
        if isinstance(planted, dict):
            return trace_model(model, **planted)
        if planted is not None:
            with planted:
                return trace_model(model)
        return trace_model(model)


def layer(model: Any, i: int) -> Any:
    inner = model.transformer.h if hasattr(model, "transformer") else model.model.layers
    return inner[i]


def add_to_weight(path: str, i: int, place: tuple[int, int]) -> Callable[[Any], None]:
    def plant(model: Any) -> None:
        layer(model, i).get_submodule(path).weight[place] += 0.5

    return plant


def drop_bias(path: str, i: int) -> Callable[[Any], None]:
    def plant(model: Any) -> None:
        layer(model, i).get_submodule(path).bias.zero_()

    return plant


def set_base(base: float) -> Callable[[Any], None]:
    def plant(model: Any) -> None:
        rotary = model.model.rotary_emb
        n = len(rotary.inv_freq)
        rotary.inv_freq.copy_(base ** -(torch.arange(n, dtype=torch.float32) / n))

    return plant


def open_next_key(_model: Any) -> dict[str, Any]:
    return {"attention_mask": torch.ones(1, 1, LENGTH, LENGTH, dtype=torch.bool).tril(1)}


def count_from_one(_model: Any) -> dict[str, Any]:
    return {"position_ids": torch.arange(1, LENGTH + 1)[None]}


def compute_in_bfloat16(i: int) -> Callable[[Any], None]:
    def plant(model: Any) -> None:
        block = layer(model, i).bfloat16()
        forward = block.forward

        def narrow(hidden_states: Tensor, position_embeddings: Any, **options: Any) -> Tensor:
            places = tuple(each.bfloat16() for each in position_embeddings)
            return forward(hidden_states.bfloat16(), position_embeddings=places, **options).float()

        block.forward = narrow

    return plant


def transpose(path: str, i: int) -> Callable[[Any], None]:
    def plant(model: Any) -> None:
        weight = layer(model, i).get_submodule(path).weight
        weight.copy_(weight.T.clone())

    return plant


def swap_query_heads(model: Any) -> None:
    weight = layer(model, 3).self_attn.q_proj.weight
    heads = weight.view(4, 16, 64).clone()
    weight.copy_(heads[[2, 1, 0, 3]].flatten(0, 1))


def zero_query_head(model: Any) -> None:
    layer(model, 2).self_attn.q_proj.weight[16:32] = 0


def set_epsilon(model: Any) -> None:
    layer(model, 1).input_layernorm.variance_epsilon = 1e-2


def halve_scale(model: Any) -> None:
    layer(model, 2).self_attn.scaling /= 2


def drop_softcap(model: Any) -> None:
    layer(model, 1).self_attn.attn_logit_softcapping = None


def round_weights(model: Any) -> None:
    for module in model.model.modules():
        if isinstance(module, nn.Linear):
            step = module.weight.abs().amax(1, keepdim=True) / 127
            module.weight.copy_((module.weight / step).round() * step)


def swap_layers(model: Any) -> None:
    layers = model.model.layers
    one, two = layers[1].state_dict(), layers[2].state_dict()
    one = {name: t.clone() for name, t in one.items()}
    layers[1].load_state_dict(two)
    layers[2].load_state_dict(one)


def scale_embeddings(model: Any) -> None:
    model.model.embed_tokens.weight *= 8.0


@contextmanager
def _other_kernel(change: Callable[..., dict[str, Any]]) -> Iterator[None]:
    """Attention of the same name that computes something else."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    original = ALL_ATTENTION_FUNCTIONS["sdpa"]

    def sdpa(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, **options: Any):
        given = {"query": query, "key": key, "value": value, **options}
        return original(module, attention_mask=mask, **{**given, **change(**given)})

    ALL_ATTENTION_FUNCTIONS["sdpa"] = sdpa
    try:
        yield
    finally:
        ALL_ATTENTION_FUNCTIONS["sdpa"] = original


def interleave_groups(_model: Any) -> Any:
    def change(query: Tensor, key: Tensor, value: Tensor, **_options: Any) -> dict[str, Any]:
        # Query heads 0 and 2 share the first key-value head here, not 0 and 1.
        return {"query": query[:, [0, 2, 1, 3]], "key": key, "value": value}

    return _reordered_kernel(change)


@contextmanager
def _reordered_kernel(change: Callable[..., dict[str, Any]]) -> Iterator[None]:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    original = ALL_ATTENTION_FUNCTIONS["sdpa"]

    def sdpa(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, **options: Any):
        changed = change(query=query, key=key, value=value)
        out, weights = original(module, attention_mask=mask, **{**changed, **options})
        return out[:, :, [0, 2, 1, 3]], weights  # (B, L, H, D)

    ALL_ATTENTION_FUNCTIONS["sdpa"] = sdpa
    try:
        yield
    finally:
        ALL_ATTENTION_FUNCTIONS["sdpa"] = original


def double_kernel_scale(_model: Any) -> Any:
    def change(scaling: float, **_options: Any) -> dict[str, Any]:
        return {"scaling": 2 * scaling}

    return _other_kernel(change)


FAULTS: dict[str, Fault] = {
    "a changed weight of the values": Fault(
        model="llama",
        plant=add_to_weight("self_attn.v_proj", 2, (5, 7)),
        where="decoder.2.self",
        operands=("v",),
        kind="coordinates",
        values={"feature": 7, "places": [(0, 5)]},
    ),
    "a changed weight of the queries": Fault(
        model="llama",
        plant=add_to_weight("self_attn.q_proj", 1, (20, 3)),
        where="decoder.1.self",
        operands=("q",),
        kind="coordinates",
        values={"feature": 3},
    ),
    "a wrong rotary base": Fault(
        model="llama",
        plant=set_base(500000.0),
        where="decoder.0.self",
        operands=("q", "k"),
        kind="rotated",
        values={"law": "base", "first": 10000.0, "second": 500000.0},
    ),
    "a mask one off": Fault(
        model="llama",
        plant=open_next_key,
        where="decoder.0.self",
        operands=("mask",),
        kind="mask",
        values={"kind": "right", "by": 1, "future": 1},
    ),
    "a bfloat16 layer": Fault(
        model="llama",
        plant=compute_in_bfloat16(2),
        where="decoder.2.self",
        operands=("q", "k", "v"),
        kind="rounded",
        values={"dtype": "bfloat16"},
    ),
    "a dropped bias of the keys": Fault(
        model="qwen",
        plant=drop_bias("self_attn.k_proj", 1),
        where="decoder.1.self",
        operands=("k",),
        kind="constant",
        values={"before": "rotation"},
    ),
    "a dropped bias of the values": Fault(
        model="qwen",
        plant=drop_bias("self_attn.v_proj", 2),
        where="decoder.2.self",
        operands=("v",),
        kind="constant",
    ),
    "a transposed output projection": Fault(
        model="llama",
        plant=transpose("self_attn.o_proj", 1),
        where="decoder.1.self",
        operands=("written",),
        kind="transposed",
    ),
    "swapped heads": Fault(
        model="llama",
        plant=swap_query_heads,
        where="decoder.3.self",
        operands=("q",),
        kind="permuted",
        values={"heads": {0: 2, 2: 0}},
    ),
    "a wrong mapping of groups": Fault(
        model="llama",
        plant=interleave_groups,
        where="decoder.0.self",
        operands=("out",),
        kind="kernel groups",
    ),
    "a wrong epsilon": Fault(
        model="llama",
        plant=set_epsilon,
        where="decoder.1.self",
        operands=("q", "k", "v"),
        kind="rescaled",
        values={"epsilon": 1e-2},
    ),
    "a wrong scale": Fault(
        model="llama",
        plant=halve_scale,
        where="decoder.2.self",
        operands=("scale",),
        kind="scale",
        values={"first": 0.25, "second": 0.125},
    ),
    "a missing softcap": Fault(
        model="gemma",
        plant=drop_softcap,
        where="decoder.1.self",
        operands=("softcap",),
        kind="softcap",
        values={"first": 1.0, "second": None},
    ),
    "a window one off": Fault(
        model="mistral",
        plant=lambda _model: None,
        changed={"sliding_window": 9},
        where="decoder.0.self",
        operands=("mask",),
        kind="mask",
        values={"kind": "left", "by": 1, "first": 8, "second": 9},
    ),
    "rotary positions from 1": Fault(
        model="llama",
        plant=count_from_one,
        where="decoder.0.self",
        operands=("q", "k"),
        kind="rotated",
        values={"law": "positions", "by": 1.0},
    ),
    "learned positions from 1": Fault(
        model="gpt2",
        plant=count_from_one,
        where="decoder",
        operands=("start",),
        kind="places",
        values={"by": 1},
    ),
    "weights of 8 bits": Fault(
        model="llama",
        plant=round_weights,
        where="decoder.0.self",
        operands=("q", "k", "v"),
        kind="even",
        values={"bits": 8},
    ),
    "a head without queries": Fault(
        model="llama",
        plant=zero_query_head,
        where="decoder.2.self",
        operands=("q",),
        kind="zeroed",
        values={"heads": [1]},
    ),
    "swapped layers": Fault(
        model="llama",
        plant=swap_layers,
        where="decoder.1.self",
        operands=("q", "k", "v"),
        kind="other layer",
        values={"layer": 2},
    ),
    "a dropped bias of the output": Fault(
        model="gpt2",
        plant=drop_bias("attn.c_proj", 2),
        where="decoder.2.self",
        operands=("written",),
        kind="constant",
    ),
    "a changed weight of the feed-forward": Fault(
        model="llama",
        plant=add_to_weight("mlp.down_proj", 1, (9, 4)),
        where="decoder.1.mlp",
        operands=("mlp",),
        kind="coordinates",
        values={"places": [(0, 9)]},
    ),
    "embeddings that are scaled": Fault(
        model="llama",
        plant=scale_embeddings,
        where="decoder",
        operands=("start",),
        kind="scaled",
        values={"factor": 8.0},
    ),
    "a kernel with another scale": Fault(
        model="llama",
        plant=double_kernel_scale,
        where="decoder.0.self",
        operands=("out",),
        kind="kernel scale",
        values={"first": 0.25, "second": 0.5},
    ),
}
