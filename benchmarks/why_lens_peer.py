"""TransformerLens at long lengths, beside ours: what caching and patching a head take, or that it
runs out of memory.

It needs transformer-lens and einops alone: what they import besides and what is not installed is
replaced by empty modules, which this benchmark never calls.
"""

import gc
import importlib
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from importlib.machinery import ModuleSpec
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

import glassformer as gf
from glassformer.tracing.variants import run_variants

UNNEEDED = (
    "accelerate",
    "accelerate.hooks",
    "accelerate.utils",
    "datasets",
    "datasets.arrow_dataset",
    "datasets.iterable_dataset",
    "datasets.load",
    "pandas",
    "rich",
)
KEPT = ("hook_q", "hook_k", "hook_v", "hook_resid_pre", "hook_resid_mid", "hook_resid_post")


class _Empty(ModuleType):
    """A module of which every name is an empty class."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__spec__ = ModuleSpec(name, None, is_package=True)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def import_bridge() -> Any:
    """TransformerBridge, with empty modules for what is missing; transformers looks first."""
    import transformers  # noqa: F401

    for name in UNNEEDED:
        try:
            importlib.import_module(name)
        except ImportError:
            sys.modules[name] = _Empty(name)
    utilities = sys.modules["accelerate.utils"]
    if isinstance(utilities, _Empty):
        utilities.align_module_device = lambda *_args, **_options: nullcontext()  # type: ignore[attr-defined]
    from transformer_lens.model_bridge import (  # pyright: ignore[reportMissingImports]
        TransformerBridge,
    )

    return TransformerBridge


def compare_lengths(model: Any, lengths: list[int], patches: int, device: torch.device) -> None:
    """Ours at every length, on fused attention; then theirs, which switches the model to eager."""
    for length in lengths:
        _run_ours(model, _draw(model, length, device), patches, device)
    with TemporaryDirectory() as folder:
        bridge = import_bridge().boot_transformers(
            folder,
            hf_model=model,
            tokenizer=save_tokenizer(folder),
            device=str(device),
            dtype=next(model.parameters()).dtype,
        )
    bridge.eval()
    for length in lengths:
        _run_theirs(bridge, _draw(model, length, device), patches, device)


def _draw(model: Any, length: int, device: torch.device) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    n = model.config.vocab_size
    return torch.randint(0, n, (1, length), generator=generator).to(device)


def _run_ours(model: Any, tokens: Tensor, patches: int, device: torch.device) -> None:
    traces = []

    def plain() -> None:
        model(tokens, logits_to_keep=1)

    def record() -> None:
        traces.clear()
        with gf.watch(model, residual=True) as trace:
            model(tokens, logits_to_keep=1)
        traces.append(trace)

    def patch() -> None:
        trace = traces[0]
        for layer, head, position in _cells(model, tokens, patches):
            change = gf.Patch(f"decoder.{layer}.self", trace, head=head, positions=[position])
            end = run_variants(trace, [change])[:, -1:]
            trace.residual().require_readout()(end)

    name = f"ours, {tokens.shape[1]:,} tokens"
    _report(f"{name}: forward pass", plain, device)
    _report(f"{name}: stream and operands recorded", record, device)
    if traces:
        _report(f"{name}: {patches} heads patched at a position, one by one", patch, device)


def _run_theirs(bridge: Any, tokens: Tensor, patches: int, device: torch.device) -> None:
    options = {"logits_to_keep": 1, "use_cache": False}

    def plain() -> None:
        bridge(tokens, **options)

    def cache_some() -> None:
        bridge.run_with_cache(
            tokens, names_filter=lambda name: name.rpartition(".")[2] in KEPT, **options
        )

    def cache_all() -> None:
        bridge.run_with_cache(tokens, **options)

    def patch() -> None:
        for layer, head, position in _cells(bridge, tokens, patches):

            def hook(z: Tensor, hook: Any, head: int = head, position: int = position) -> Tensor:
                del hook
                z = z.clone()
                z = z if z.ndim == 4 else z.unflatten(-1, (bridge.cfg.n_heads, -1))
                z[:, position, head] = 0.5  # the value makes no difference to the cost
                return z

            name = f"blocks.{layer}.attn.hook_z"
            bridge.run_with_hooks(tokens, fwd_hooks=[(name, hook)], **options)

    name = f"TransformerLens, {tokens.shape[1]:,} tokens"
    _report(f"{name}: forward pass", plain, device)
    _report(f"{name}: run_with_cache, only stream and q, k, v", cache_some, device)
    _report(f"{name}: run_with_cache", cache_all, device)
    _report(f"{name}: {patches} heads patched at a position, one by one", patch, device)


def _cells(model: Any, tokens: Tensor, n: int) -> list[tuple[int, int, int]]:
    """Layer, head, position; layers spread evenly."""
    config = getattr(model, "cfg", None) or model.config
    n_layers = getattr(config, "n_layers", None) or config.num_hidden_layers
    n_heads = getattr(config, "n_heads", None) or config.num_attention_heads
    length = tokens.shape[1]
    return [(i * n_layers // n, i % n_heads, (i + 1) * length // (n + 1)) for i in range(n)]


def _report(name: str, work: Callable[[], None], device: torch.device) -> None:
    """Time of the second run and its peak, or that there is not enough memory."""
    is_gpu = device.type == "cuda"
    try:
        with torch.no_grad():
            for _ in range(2):
                _clean(is_gpu)
                start = time.perf_counter()
                work()
                if is_gpu:
                    torch.cuda.synchronize()
                spent = time.perf_counter() - start
    except torch.OutOfMemoryError as error:
        wanted = str(error).partition("Tried to allocate ")[2].partition(". ")[0]
        print(f"{name}: out of memory (tried to allocate {wanted} more)", flush=True)
        error.__traceback__ = None
        _clean(is_gpu)
        return
    peak = f"{torch.cuda.max_memory_allocated() / 2**20:,.0f} MiB" if is_gpu else "not measured"
    print(f"{name}: {spent * 1000:,.1f} ms, peak memory {peak}", flush=True)


def _clean(is_gpu: bool) -> None:
    gc.collect()
    if is_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()


def save_tokenizer(folder: str) -> Any:
    """A bridge asks for one and reads it again from its folder, though nothing is tokenized."""
    from tokenizers import Tokenizer, models
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({str(i): i for i in range(8)}, unk_token="3"))
    PreTrainedTokenizerFast(
        tokenizer_object=words, bos_token="0", pad_token="1", eos_token="2", unk_token="3"
    ).save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)
