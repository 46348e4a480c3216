"""Tiny random models of every architecture, made by transformers itself."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

V, MAX_LEN = 37, 24
SHARED = {"vocab_size": V, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
ENCODER = {
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": MAX_LEN,
    **SHARED,
}
DECODER = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "intermediate_size": 20,
    "max_position_embeddings": MAX_LEN,
    **SHARED,
}
BOTH = {
    "d_model": 12,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": MAX_LEN,
    "decoder_start_token_id": 1,
    **SHARED,
}
T5 = {
    "d_model": 12,
    "d_kv": 5,
    "d_ff": 20,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 3,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 9,
    "decoder_start_token_id": 1,
    **SHARED,
}
YARN = {
    "rope_type": "yarn",
    "factor": 3.0,
    "rope_theta": 500.0,
    "original_max_position_embeddings": 8,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "rope_theta": 500.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8,
}
EXPERTS = {"num_local_experts": 5, "num_experts_per_tok": 2}
QWEN_EXPERTS = {"num_experts_per_tok": 3, "moe_intermediate_size": 8}
DEEPSEEK = {
    **DECODER,
    "num_key_value_heads": 6,
    "kv_lora_rank": 10,
    "q_lora_rank": None,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8,
    "v_head_dim": 7,
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "n_shared_experts": 2,
    "moe_intermediate_size": 8,
    "first_k_dense_replace": 1,
    "routed_scaling_factor": 1.7,
}
MODERN = {
    **ENCODER,
    "num_hidden_layers": 4,
    "local_attention": 6,
    "global_attn_every_n_layers": 3,
    "cls_token_id": 0,
    "sep_token_id": 2,
}
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}

# name: (config class, its fields, model class)
MODELS: dict[str, tuple[str, dict[str, Any], str]] = {
    "bert": ("BertConfig", ENCODER, "BertForMaskedLM"),
    "bert-bare": ("BertConfig", ENCODER, "BertModel"),
    "bert-classes": ("BertConfig", {**ENCODER, "num_labels": 3}, "BertForSequenceClassification"),
    "roberta": ("RobertaConfig", ENCODER, "RobertaForMaskedLM"),
    "roberta-bare": ("RobertaConfig", ENCODER, "RobertaModel"),
    "roberta-classes": ("RobertaConfig", ENCODER, "RobertaForSequenceClassification"),
    "xlm-roberta": ("XLMRobertaConfig", ENCODER, "XLMRobertaForMaskedLM"),
    "modernbert": ("ModernBertConfig", MODERN, "ModernBertForMaskedLM"),
    "modernbert-bare": ("ModernBertConfig", {**MODERN, "local_attention": 3}, "ModernBertModel"),
    "modernbert-biases": (
        "ModernBertConfig",
        {
            **MODERN,
            **dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), True),
            "layer_types": [*["sliding_attention"] * 2, "full_attention", "sliding_attention"],
            "rope_parameters": {
                "full_attention": LINEAR,
                "sliding_attention": {**LINEAR, "rope_theta": 50.0},
            },
        },
        "ModernBertForMaskedLM",
    ),
    "modernbert-local": (
        "ModernBertConfig",
        {**MODERN, "layer_types": ["sliding_attention"] * 4},
        "ModernBertForMaskedLM",
    ),
    "modernbert-global": (
        "ModernBertConfig",
        {**MODERN, "layer_types": ["full_attention"] * 4},
        "ModernBertForMaskedLM",
    ),
    "gpt2": (
        "GPT2Config",
        {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": MAX_LEN, **SHARED},
        "GPT2LMHeadModel",
    ),
    "gpt2-untied": (
        "GPT2Config",
        {
            "n_embd": 12,
            "n_layer": 2,
            "n_head": 3,
            "n_inner": 17,
            "n_positions": MAX_LEN,
            "tie_word_embeddings": False,
            "scale_attn_weights": False,
            "activation_function": "relu",
            **SHARED,
        },
        "GPT2LMHeadModel",
    ),
    "llama": ("LlamaConfig", DECODER, "LlamaForCausalLM"),
    "llama-tied": (
        "LlamaConfig",
        {**DECODER, "tie_word_embeddings": True, "head_dim": 6, "rope_parameters": LLAMA3},
        "LlamaForCausalLM",
    ),
    "llama-biases": (
        "LlamaConfig",
        {**DECODER, "attention_bias": True, "mlp_bias": True, "rope_parameters": YARN},
        "LlamaForCausalLM",
    ),
    "llama-linear": ("LlamaConfig", {**DECODER, "rope_parameters": LINEAR}, "LlamaForCausalLM"),
    "mistral": ("MistralConfig", {**DECODER, "sliding_window": 4}, "MistralForCausalLM"),
    "mistral-wide": ("MistralConfig", {**DECODER, "sliding_window": None}, "MistralForCausalLM"),
    "qwen2": ("Qwen2Config", DECODER, "Qwen2ForCausalLM"),
    "qwen2-window": (
        "Qwen2Config",
        {**DECODER, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 0},
        "Qwen2ForCausalLM",
    ),
    "qwen2-mixed": (
        "Qwen2Config",
        {**DECODER, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
        "Qwen2ForCausalLM",
    ),
    "qwen3-local": (
        "Qwen3Config",
        {
            **DECODER,
            "num_hidden_layers": 4,
            "use_sliding_window": True,
            "sliding_window": 3,
            "layer_types": [*["sliding_attention"] * 2, "full_attention", "sliding_attention"],
        },
        "Qwen3ForCausalLM",
    ),
    "qwen3": ("Qwen3Config", {**DECODER, "head_dim": 6}, "Qwen3ForCausalLM"),
    "qwen3-biases": (
        "Qwen3Config",
        {**DECODER, "head_dim": 4, "attention_bias": True},
        "Qwen3ForCausalLM",
    ),
    "mixtral": ("MixtralConfig", {**DECODER, **EXPERTS}, "MixtralForCausalLM"),
    "mixtral-window": (
        "MixtralConfig",
        {**DECODER, **EXPERTS, "sliding_window": 4, "tie_word_embeddings": True},
        "MixtralForCausalLM",
    ),
    "qwen3-moe": (
        "Qwen3MoeConfig",
        {**DECODER, "head_dim": 6, "num_experts": 5, **QWEN_EXPERTS, "norm_topk_prob": True},
        "Qwen3MoeForCausalLM",
    ),
    "qwen3-moe-dense": (
        "Qwen3MoeConfig",
        {**DECODER, "head_dim": 4, "num_experts": 5, **QWEN_EXPERTS, "mlp_only_layers": [0]},
        "Qwen3MoeForCausalLM",
    ),
    "deepseek-v2": ("DeepseekV2Config", DEEPSEEK, "DeepseekV2ForCausalLM"),
    "deepseek-v2-groups": (
        "DeepseekV2Config",
        {
            **DEEPSEEK,
            "q_lora_rank": 9,
            "topk_method": "group_limited_greedy",
            "n_group": 3,
            "topk_group": 2,
            "rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": 0.7},
        },
        "DeepseekV2ForCausalLM",
    ),
    "deepseek-v3": (
        "DeepseekV3Config",
        {**DEEPSEEK, "q_lora_rank": 9, "n_group": 3, "topk_group": 2, "attention_bias": True},
        "DeepseekV3ForCausalLM",
    ),
    "deepseek-v3-half": (
        "DeepseekV3Config",
        {
            **DEEPSEEK,
            "n_group": 1,
            "topk_group": 1,
            "rope_interleave": False,
            "norm_topk_prob": False,
            "rope_parameters": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.5},
        },
        "DeepseekV3ForCausalLM",
    ),
    "bart": ("BartConfig", BOTH, "BartForConditionalGeneration"),
    "marian": (
        "MarianConfig",
        {**BOTH, "scale_embedding": True, "activation_function": "swish"},
        "MarianMTModel",
    ),
    "t5": ("T5Config", T5, "T5ForConditionalGeneration"),
    "t5-gated": (
        "T5Config",
        {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
        "T5ForConditionalGeneration",
    ),
}


def tiny(name: str, *, seed: int = 0) -> torch.nn.Module:
    """A model with large random weights everywhere, so that every part of it matters."""
    import transformers

    config_class, fields, model_class = MODELS[name]
    config = getattr(transformers, config_class)(**fields)
    model = getattr(transformers, model_class)(config).eval()
    generator = torch.Generator().manual_seed(seed)
    for path, part in model.named_parameters():
        if part.requires_grad:  # Marian's sines and cosines are not learned
            part.data.normal_(std=0.3, generator=generator)
            if "norm" in path.lower() and path.endswith("weight"):
                part.data += 1
    for path, buffer in model.named_buffers():
        if path == "final_logits_bias" or path.endswith("e_score_correction_bias"):
            buffer.normal_(generator=generator)
    return model


def saved(name: str, folder: Path, **options: Any) -> torch.nn.Module:
    """The same, saved by transformers."""
    model = tiny(name)
    model.save_pretrained(folder, **options)
    return model


def foreign_class(name: str) -> Callable[..., Any]:
    import transformers

    return getattr(transformers, MODELS[name][2])


def attention_mask(lengths: torch.Tensor, length: int) -> torch.Tensor:
    return (torch.arange(length) < lengths[:, None]).long()


def foreign_outputs(
    model: torch.nn.Module,
    tokens: torch.Tensor,
    lengths: torch.Tensor,
    source: torch.Tensor | None = None,
    source_lengths: torch.Tensor | None = None,
) -> torch.Tensor:
    """What transformers computes: logits, hidden states for a bare model, scores of classes."""
    mask = attention_mask(lengths, tokens.shape[1])
    with torch.no_grad():
        if source is None:
            out = model(input_ids=tokens, attention_mask=mask)
        else:
            out = model(
                input_ids=source,
                attention_mask=attention_mask(source_lengths, source.shape[1]),
                decoder_input_ids=tokens,
                decoder_attention_mask=mask,
            )
    return out.logits if hasattr(out, "logits") else out.last_hidden_state
