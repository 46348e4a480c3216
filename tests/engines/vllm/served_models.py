"""Tiny random models that vLLM serves, the requests they are given, and what they should see."""

from pathlib import Path
from typing import Any

import torch
from numpy import ndarray

V, LENGTH, WINDOW = 131, 256, 40
SHAPE = {
    "vocab_size": V,
    "hidden_size": 96,
    "head_dim": 64,  # of those that vLLM has kernels for on a CPU
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 112,
    "max_position_embeddings": LENGTH,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "initializer_range": 0.2,  # so that attention is not even
}
ENGINE = {
    "dtype": "float32",
    "max_model_len": LENGTH,
    "block_size": 32,
    "kv_cache_memory_bytes": 1 << 27,
    "max_num_seqs": 6,
    "max_num_batched_tokens": 48,  # less than most prompts: they are cut
    "enable_chunked_prefill": True,
    "enable_prefix_caching": True,
    "skip_tokenizer_init": True,
    "disable_log_stats": True,
}


def save_models(folder: Path) -> dict[str, Path]:
    """Write a model of each family."""
    from transformers import (
        Gemma2Config,
        Gemma2ForCausalLM,
        LlamaConfig,
        LlamaForCausalLM,
        Qwen3Config,
        Qwen3ForCausalLM,
    )

    gemma = {"sliding_window": WINDOW, "query_pre_attn_scalar": 48, "attn_logit_softcapping": 5.0}
    made = {
        "llama": (LlamaForCausalLM, LlamaConfig(**SHAPE)),
        "qwen3": (Qwen3ForCausalLM, Qwen3Config(**SHAPE)),
        "gemma2": (Gemma2ForCausalLM, Gemma2Config(**SHAPE, **gemma)),
    }
    for name, (kind, config) in made.items():
        torch.manual_seed(0)
        kind(config).save_pretrained(folder / name)
    return {name: folder / name for name in made}


def save_tokenizer(folder: Path) -> None:
    """Write a tokenizer of words into the folder of a model: w0 w1 w2 …"""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.WordLevel({f"w{i}": i for i in range(V)}, unk_token="w2"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=backend).save_pretrained(folder)


def make_prompts() -> list[list[int]]:
    """Sixteen prompts of unequal length; half of them begin alike."""
    rng = torch.Generator().manual_seed(1)
    shared = torch.randint(3, V, (70,), generator=rng).tolist()
    lengths = [3, 9, 17, 32, 47, 64, 90, 121]
    alone = [torch.randint(3, V, (n,), generator=rng).tolist() for n in lengths]
    return [*alone, *(shared + each[:20] for each in alone)]


def build_engine(folder: Path, **options: Any) -> Any:
    from vllm import LLM

    return LLM(str(folder), **{**ENGINE, **options})


def generate(engine: Any, prompts: list[list[int]], n_tokens: int = 7) -> list[list[int]]:
    """The tokens with which an engine continues these prompts, greedily."""
    from vllm import SamplingParams

    asked = SamplingParams(max_tokens=n_tokens, temperature=0.0, ignore_eos=True, detokenize=False)
    given = [{"prompt_token_ids": prompt} for prompt in prompts]
    found = engine.generate(given, asked, use_tqdm=False)
    return [list(each.outputs[0].token_ids) for each in found]


def generate_without_plugin(folder: Path, prompts: list[list[int]]) -> list[list[int]]:
    """The same in an engine without our backends; in a process where VLLM_PLUGINS excludes them."""
    engine = build_engine(folder, enforce_eager=True)
    layers = engine.llm_engine.vllm_config.compilation_config.static_forward_context.values()
    assert not any(hasattr(layer.impl, "listeners") for layer in layers)
    return generate(engine, prompts)


def close_engine(engine: Any) -> None:
    """End an engine, so that the next one finds the process as it was."""
    from vllm.distributed import cleanup_dist_env_and_memory

    core = engine.llm_engine.engine_core
    core.shutdown()
    del engine, core
    cleanup_dist_env_and_memory()


@torch.no_grad()
def eager_weights(folder: Path, texts: list[list[int]]) -> list[list[ndarray]]:
    """The weights of each layer on each text, (H, L, L), by transformers' eager attention.

    Call it in a process without vLLM, whose Transformers backend changes the classes of models.
    """
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32
    ).eval()
    passes = [model(torch.tensor([text]), output_attentions=True) for text in texts]
    return [[each[0].numpy() for each in found.attentions] for found in passes]


def save_reference(folder: Path, text: list[int], path: Path) -> None:
    """A trace of the model in transformers, on one text; also in a process without vLLM."""
    from transformers import AutoModelForCausalLM

    from glassformer.tracing import watch

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad(), watch(model, outputs=True) as trace:
        model(torch.tensor([text]))
    trace.save(path)
