"""What cannot be watched in an engine, and why: known before anything runs."""

from typing import Any

from glassformer.errors import TraceError
from glassformer.tracing.engines.vllm.backends import Heard


def check_config(config: Any) -> None:
    """Refuse engines whose steps cannot be followed."""
    parallel, compiled = config.parallel_config, config.compilation_config
    guessing = config.speculative_config
    if guessing is not None and guessing.method != "ngram":
        raise TraceError(
            "Of speculative decoding, that with n-grams of the text can be watched; this engine "
            f"uses {guessing.method}, whose proposals come from attention of its own. Build it "
            'with speculative_config={"method": "ngram", …}, or without.'
        )
    for name in (
        "pipeline_parallel_size",
        "data_parallel_size",
        "decode_context_parallel_size",
        "prefill_context_parallel_size",
    ):
        if (size := getattr(parallel, name, 1)) > 1:
            raise TraceError(
                f"Of parallel engines, those with tensor parallelism alone can be watched; this "
                f"one has {name}={size}."
            )
    if config.use_v2_model_runner:
        raise TraceError(
            "Watching needs vLLM's first model runner; this engine uses the second. Set "
            "VLLM_USE_V2_MODEL_RUNNER=0 before it is built."
        )
    mode = compiled.cudagraph_mode
    if mode is not None and mode.has_full_cudagraphs():
        raise TraceError(
            f"Watching needs attention outside of CUDA graphs; this engine has cudagraph_mode="
            f"{mode.name}, which replays it unseen. Build it with "
            'compilation_config={"cudagraph_mode": "PIECEWISE"}.'
        )


def find_obstacle(layer: Any) -> str | None:
    """Why a layer's attention cannot be shown; None where it can."""
    kind, impl = type(layer).__name__, layer.impl
    if kind != "Attention":
        return f"what {kind} computes is not known here"
    if not isinstance(impl, Heard):
        return f"its backend, {layer.attn_backend.get_name()}, is not one that can be listened to"
    if layer.attn_type != "decoder":
        return f"its attention is of the type {layer.attn_type}, not that of a decoder"
    if layer.kv_sharing_target_layer_name is not None:
        return f"it reads the keys and values of {layer.kv_sharing_target_layer_name}"
    if layer.kv_cache_torch_dtype != layer.dtype:
        return f"its cache is quantised, to {layer.kv_cache_dtype}"
    if layer.use_mm_prefix:
        return "parts of its prompts are seen from both sides"
    for name, what in (("alibi_slopes", "an ALiBi bias"), ("sinks", "sinks")):
        if getattr(impl, name, None) is not None:
            return f"its attention has {what}, which is not read from engines yet"
    return None
