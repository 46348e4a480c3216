"""An engine of a few lines: it packs, cuts, preempts and caches as vLLM does."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from glassformer.tracing.engines.vllm.backends import Heard

H, K, D, SIZE, LONGEST = 4, 2, 5, 4, 24
NAMES = ["model.layers.0.self_attn.attn", "model.layers.1.self_attn.attn"]


class _Computes:
    """Stands for vLLM's implementation; its pages are (K, size, 2 · D)."""

    scale, logits_soft_cap, alibi_slopes, sinks = 0.3, 0, None, None

    def forward(self, *_: Any, **__: Any) -> None:
        return None

    def do_kv_cache_update(self, _: Any, k: Tensor, v: Tensor, cache: Tensor, at: Tensor) -> None:
        for each_k, each_v, slot in zip(k, v, at.tolist(), strict=True):
            cache[slot // SIZE, :, slot % SIZE] = torch.cat([each_k, each_v], -1)


class _Implementation(Heard, _Computes):
    pass


class Attention(nn.Module):
    """A layer as vLLM has it; the name of its class is looked at."""

    attn_type, kv_sharing_target_layer_name, use_mm_prefix = "decoder", None, False
    dtype = kv_cache_torch_dtype = torch.float32
    num_heads, num_kv_heads, head_size, head_size_v = H, K, D, D

    def __init__(self, name: str, window: int | None) -> None:
        super().__init__()
        self.layer_name, self.sliding_window, self.impl = name, window, _Implementation()
        self.kv_cache = torch.zeros(40, K, SIZE, 2 * D)


class ToyEngine:
    """Packs requests into steps; operands are a function of layer, request and position."""

    def __init__(self) -> None:
        self.layers = {name: Attention(name, w) for name, w in zip(NAMES, (None, 3), strict=True)}
        config = SimpleNamespace(to_dict=lambda: {"hidden_size": 8})
        self.runner = SimpleNamespace(
            vllm_config=SimpleNamespace(
                model_config=SimpleNamespace(
                    hf_text_config=config, hf_config=config, architecture="Toy", model="toy"
                ),
                compilation_config=SimpleNamespace(static_forward_context=self.layers),
                parallel_config=SimpleNamespace(tensor_parallel_size=1),
                speculative_config=None,
            ),
            input_batch=SimpleNamespace(token_ids_cpu=np.zeros((8, LONGEST), dtype=np.int32)),
        )
        self.pages: dict[str, list[int]] = {}
        self.context: Any = None

    def operands(self, name: str, request: str) -> tuple[Tensor, Tensor, Tensor]:
        """Requests of one letter begin alike: the number after it counts from position 8 on."""
        layer = NAMES.index(name)
        seeds = (ord(request[0]) * 10 + layer, hash_of(request) * 10 + layer)
        q, k, v = (
            torch.cat([_random(n, seeds[0] + i)[:8], _random(n, seeds[1] + i)[8:]])
            for i, n in ((0, H), (100, K), (200, K))
        )
        return q, k, v

    def step(self, **spans: tuple[int, int, int]) -> None:
        """One step: for each request where it starts, where it ends, and its prompt's length."""
        requests = list(spans)
        lengths = [stop - start for start, stop, _ in spans.values()]
        offsets = np.array([0, *np.cumsum(lengths)], dtype=np.int32)
        batch, table = self.runner.input_batch, np.zeros((len(spans), LONGEST // SIZE), np.int32)
        for i, request in enumerate(requests):
            pages = self.pages.setdefault(request, [])
            while len(pages) * SIZE < spans[request][1]:
                pages.append(1 + sum(map(len, self.pages.values())))
            table[i, : len(pages)] = pages
            batch.token_ids_cpu[i] = tokens_of(request)
        batch.num_reqs, batch.req_ids = len(spans), requests
        batch.num_computed_tokens_cpu = np.array([s[0] for s in spans.values()], dtype=np.int32)
        batch.num_prompt_tokens = np.array([s[2] for s in spans.values()], dtype=np.int32)
        self.runner.query_start_loc = SimpleNamespace(np=offsets)
        ids = [tokens_of(r)[start:stop] for r, (start, stop, _) in spans.items()]
        padding = [0, 0]
        self.runner.input_ids = SimpleNamespace(gpu=torch.tensor(np.concatenate([*ids, padding])))
        self.context = SimpleNamespace(ubatch_slices=None)
        metadata = SimpleNamespace(block_table=torch.from_numpy(table))
        for name, layer in self.layers.items():
            parts = [
                [t[start:stop] for t in self.operands(name, r)]
                for r, (start, stop, _) in spans.items()
            ]
            packed = [torch.cat([*each, torch.zeros(2, *each[0].shape[1:])]) for each in
                      zip(*parts, strict=True)]  # fmt: skip
            slots = [
                self.pages[r][at // SIZE] * SIZE + at % SIZE
                for r, (start, stop, _) in spans.items()
                for at in range(start, stop)
            ]
            n = len(slots)
            layer.impl.do_kv_cache_update(
                layer, packed[1][:n], packed[2][:n], layer.kv_cache, torch.tensor(slots)
            )
            out = torch.zeros(n + 2, H * D)
            layer.impl.forward(layer, *packed, layer.kv_cache, metadata, output=out)
            for each in packed:
                each.fill_(torch.nan)  # engines use their buffers again


def hash_of(request: str) -> int:
    return sum(ord(c) * 7**i for i, c in enumerate(request))


def tokens_of(request: str) -> np.ndarray:
    return (np.arange(LONGEST) + hash_of(request)) % 97


def _random(n_heads: int, seed: int) -> Tensor:
    return torch.randn(LONGEST, n_heads, D, generator=torch.Generator().manual_seed(seed))
