"""Tiny random models of many architectures, made from the installed transformers alone."""

import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from glassformer.tracing import Site, Trace, watch
from tiny_models import BOTH, DECODER, ENCODER, MAX_LEN, SHARED, T5

PAGE = Path(__file__).parents[2] / "docs" / "watched-architectures.md"
EVEN = {**T5, "num_decoder_layers": 2}  # transformers sizes the decoder's cache by num_layers
GPT = {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": MAX_LEN, **SHARED}
VISION = {
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "image_size": 8,
    "patch_size": 4,
    "num_channels": 3,
}
LAYERS = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 4}
CAPPED = {
    **DECODER,
    **LAYERS,
    "head_dim": 6,
    "attn_logit_softcapping": 2.0,
    "cross_attention_hidden_size": 24,
}
HEARING = {
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "conv_dim": (8, 8),
    "conv_kernel": (4, 2),
    "conv_stride": (3, 2),
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "vocab_size": 37,
}
WHISPER = {
    **BOTH,
    "num_mel_bins": 6,
    "max_source_positions": 10,
    "max_target_positions": MAX_LEN,
}


@dataclass
class Architecture:
    """A tiny model: its config, its class, and what it reads."""

    config: str
    fields: dict[str, Any]
    model: str
    reads: str = "text"  # text, image, sound, mel, spectrogram, text and image


def _encoder(name: str, model: str | None = None, **fields: Any) -> Architecture:
    return Architecture(f"{name}Config", {**ENCODER, **fields}, model or f"{name}Model")


def _decoder(name: str, model: str | None = None, **fields: Any) -> Architecture:
    return Architecture(f"{name}Config", {**DECODER, **fields}, model or f"{name}ForCausalLM")


def _both(name: str, model: str | None = None, **fields: Any) -> Architecture:
    model = model or f"{name}ForConditionalGeneration"
    return Architecture(f"{name}Config", {**BOTH, **fields}, model)


ARCHITECTURES: dict[str, Architecture] = {
    "albert": _encoder("Albert", embedding_size=8),
    "bert": _encoder("Bert"),
    "camembert": _encoder("Camembert"),
    "data2vec-text": _encoder("Data2VecText"),
    "distilbert": Architecture(
        "DistilBertConfig",
        {"dim": 12, "n_layers": 2, "n_heads": 3, "hidden_dim": 20,
         "max_position_embeddings": MAX_LEN, **SHARED},
        "DistilBertModel",
    ),
    "electra": _encoder("Electra", embedding_size=8),
    "ernie": _encoder("Ernie"),
    "esm": _encoder("Esm", mask_token_id=5, position_embedding_type="rotary"),
    "eurobert": _encoder("EuroBert", num_key_value_heads=1),
    "megatron-bert": _encoder("MegatronBert"),
    "mobilebert": _encoder("MobileBert", embedding_size=12, intra_bottleneck_size=12,
                           true_hidden_size=12, num_feedforward_networks=1),
    "modernbert": _encoder("ModernBert", local_attention=4, global_attn_every_n_layers=2,
                           cls_token_id=3, sep_token_id=2),
    "rembert": _encoder("RemBert", input_embedding_size=8, output_embedding_size=8),
    "roberta": _encoder("Roberta"),
    "xlm-roberta": _encoder("XLMRoberta"),
    "xmod": _encoder("Xmod", default_language="en_XX"),
    "arcee": _decoder("Arcee"),
    "biogpt": _decoder("BioGpt"),
    "bitnet": _decoder("BitNet"),
    "bloom": Architecture("BloomConfig", {"hidden_size": 12, "n_layer": 2, "n_head": 3, **SHARED},
                          "BloomForCausalLM"),
    "cohere": _decoder("Cohere"),
    "cohere2": _decoder("Cohere2", **LAYERS),
    "deepseek-v3": _decoder("DeepseekV3", q_lora_rank=6, kv_lora_rank=8, qk_rope_head_dim=4,
                            qk_nope_head_dim=6, v_head_dim=5, num_key_value_heads=6,
                            n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1,
                            moe_intermediate_size=16, first_k_dense_replace=1),
    "ernie4-5": _decoder("Ernie4_5"),
    "exaone4": _decoder("Exaone4", **LAYERS),
    "falcon": Architecture("FalconConfig", {"hidden_size": 12, "num_hidden_layers": 2,
                           "num_attention_heads": 3, **SHARED}, "FalconForCausalLM"),
    "gemma": _decoder("Gemma", head_dim=5 + 1),
    "gemma2": _decoder("Gemma2", head_dim=6, attn_logit_softcapping=2.0,
                       query_pre_attn_scalar=7, **LAYERS),
    "gemma3": _decoder("Gemma3Text", "Gemma3ForCausalLM", head_dim=6, **LAYERS),
    "gemma3n": _decoder("Gemma3nText", "Gemma3nForCausalLM", head_dim=6, laurel_rank=2,
                        vocab_size_per_layer_input=37, hidden_size_per_layer_input=4,
                        num_kv_shared_layers=0, altup_num_inputs=2, intermediate_size=[20, 20],
                        activation_sparsity_pattern=[0.0, 0.0], **LAYERS),
    "glm": _decoder("Glm", head_dim=4),
    "glm4": _decoder("Glm4", head_dim=4),
    "gpt2": Architecture("GPT2Config", GPT, "GPT2LMHeadModel"),
    "gpt-bigcode": Architecture("GPTBigCodeConfig", GPT, "GPTBigCodeForCausalLM"),
    "gpt-neo": Architecture("GPTNeoConfig", {"hidden_size": 12, "num_layers": 2, "num_heads": 3,
                            "attention_types": [[["global", "local"], 1]], "window_size": 4,
                            "max_position_embeddings": MAX_LEN, **SHARED}, "GPTNeoForCausalLM"),
    "gpt-neox": _decoder("GPTNeoX"),
    "gpt-oss": _decoder("GptOss", head_dim=4, num_local_experts=4, num_experts_per_tok=2,
                        **LAYERS),
    "gptj": Architecture("GPTJConfig", {**GPT, "rotary_dim": 2}, "GPTJForCausalLM"),
    "granite": _decoder("Granite", attention_multiplier=0.3),
    "helium": _decoder("Helium", head_dim=4),
    "hunyuan": _decoder("HunYuanDenseV1", head_dim=4),
    "jamba": _decoder("Jamba", num_experts=2, attn_layer_period=2, attn_layer_offset=1,
                      expert_layer_period=2, use_mamba_kernels=False, mamba_dt_rank=4,
                      mamba_d_state=4),
    "lfm2": _decoder("Lfm2", layer_types=["conv", "full_attention"], block_multiple_of=4),
    "llama": _decoder("Llama"),
    "llama4": _decoder("Llama4Text", "Llama4ForCausalLM", head_dim=4, num_local_experts=2,
                       intermediate_size_mlp=16, attention_chunk_size=4, no_rope_layers=[1, 0],
                       layer_types=["chunked_attention", "full_attention"]),
    "ministral": _decoder("Ministral", head_dim=4, **LAYERS),
    "mistral": _decoder("Mistral", sliding_window=4),
    "mixtral": _decoder("Mixtral", num_local_experts=4, sliding_window=4),
    "modernbert-decoder": _decoder(
        "ModernBertDecoder", **LAYERS, cls_token_id=3, sep_token_id=2
    ),
    "mpt": Architecture("MptConfig", {"d_model": 12, "n_layers": 2, "n_heads": 3,
                        "max_seq_len": MAX_LEN, "use_cache": True, **SHARED}, "MptForCausalLM"),
    "nemotron": _decoder("Nemotron"),
    "olmo": _decoder("Olmo"),
    "olmo2": _decoder("Olmo2"),
    "olmo3": _decoder("Olmo3", **LAYERS),
    "opt": Architecture("OPTConfig", {"hidden_size": 12, "num_hidden_layers": 2, "ffn_dim": 20,
                        "num_attention_heads": 3, "max_position_embeddings": MAX_LEN,
                        "word_embed_proj_dim": 12, **SHARED}, "OPTForCausalLM"),
    "persimmon": _decoder("Persimmon", num_key_value_heads=6, head_dim=4),
    "phi": _decoder("Phi"),
    "phi3": _decoder("Phi3"),
    "qwen2": _decoder("Qwen2"),
    "qwen2-moe": _decoder("Qwen2Moe", num_experts=4, num_experts_per_tok=2,
                          moe_intermediate_size=16, shared_expert_intermediate_size=12),
    "qwen3": _decoder("Qwen3", head_dim=6),
    "qwen3-moe": _decoder("Qwen3Moe", head_dim=6, num_experts=4, num_experts_per_tok=2,
                          moe_intermediate_size=16),
    "qwen3-next": _decoder("Qwen3Next", head_dim=6, num_experts=4, num_experts_per_tok=2,
                           moe_intermediate_size=16, shared_expert_intermediate_size=12,
                           linear_num_key_heads=2, linear_num_value_heads=2,
                           linear_key_head_dim=4, linear_value_head_dim=4,
                           layer_types=["linear_attention", "full_attention"]),
    "seed-oss": _decoder("SeedOss", head_dim=6),
    "smollm3": _decoder("SmolLM3", no_rope_layers=[1, 0]),
    "stablelm": _decoder("StableLm"),
    "starcoder2": _decoder("Starcoder2", sliding_window=4),
    "xglm": Architecture("XGLMConfig", {"d_model": 12, "num_layers": 2, "attention_heads": 3,
                         "ffn_dim": 20, "max_position_embeddings": MAX_LEN, **SHARED},
                         "XGLMForCausalLM"),
    "bart": _both("Bart"),
    "bigbird-pegasus": _both("BigBirdPegasus", attention_type="original_full"),
    "blenderbot": _both("Blenderbot"),
    "led": _both("LED", max_encoder_position_embeddings=MAX_LEN,
                 max_decoder_position_embeddings=MAX_LEN, attention_window=4),
    "longt5": Architecture("LongT5Config", {**EVEN, "local_radius": 3},
                           "LongT5ForConditionalGeneration"),
    "m2m-100": _both("M2M100", decoder_start_token_id=2),  # positions leave out padding
    "marian": _both("Marian", "MarianMTModel"),
    "mbart": _both("MBart"),
    "mt5": Architecture("MT5Config", EVEN, "MT5ForConditionalGeneration"),
    "nllb-moe": _both("NllbMoe", decoder_start_token_id=2, num_experts=4,
                      expert_capacity=8),
    "pegasus": _both("Pegasus"),
    "plbart": _both("PLBart"),
    "switch-transformers": Architecture("SwitchTransformersConfig", {**EVEN, "num_experts": 4},
                                        "SwitchTransformersForConditionalGeneration"),
    "t5": Architecture("T5Config", EVEN, "T5ForConditionalGeneration"),
    "t5gemma": Architecture("T5GemmaConfig", {"encoder": CAPPED, "decoder": CAPPED, **SHARED,
                            "decoder_start_token_id": 2}, "T5GemmaForConditionalGeneration"),
    "umt5": Architecture("UMT5Config", EVEN, "UMT5ForConditionalGeneration"),
    "whisper": Architecture("WhisperConfig", WHISPER, "WhisperForConditionalGeneration", "mel"),
    "ast": Architecture("ASTConfig", {**VISION, "num_mel_bins": 8, "max_length": 12,
                        "frequency_stride": 4, "time_stride": 4}, "ASTModel", "spectrogram"),
    "beit": Architecture("BeitConfig", {**VISION, "use_relative_position_bias": True},
                         "BeitModel", "image"),
    "clip": Architecture("CLIPConfig", {"text_config": {**ENCODER, "bos_token_id": 0},
                         "vision_config": VISION, "projection_dim": 7}, "CLIPModel",
                         "text and image"),
    "deit": Architecture("DeiTConfig", VISION, "DeiTModel", "image"),
    "dinov2": Architecture("Dinov2Config", VISION, "Dinov2Model", "image"),
    "hubert": Architecture("HubertConfig", HEARING, "HubertModel", "sound"),
    "siglip": Architecture("SiglipVisionConfig", VISION, "SiglipVisionModel", "image"),
    "swin": Architecture("SwinConfig", {"image_size": 16, "patch_size": 2, "embed_dim": 6,
                         "depths": [1, 1], "num_heads": [1, 2], "window_size": 4},
                         "SwinModel", "image"),
    "vit": Architecture("ViTConfig", VISION, "ViTModel", "image"),
    "wav2vec2": Architecture("Wav2Vec2Config", HEARING, "Wav2Vec2Model", "sound"),
    "deberta": _encoder("Deberta"),
    "xlnet": Architecture("XLNetConfig", {"d_model": 12, "n_layer": 2, "n_head": 3, "d_inner": 20,
                          **SHARED}, "XLNetModel"),
}  # fmt: skip


def built(name: str | Architecture, implementation: str) -> Any:
    """The model with large random weights everywhere, so that every part of it matters."""
    import transformers

    plan = ARCHITECTURES[name] if isinstance(name, str) else name
    config = getattr(transformers, plan.config)(**plan.fields)
    config._attn_implementation = implementation
    model = getattr(transformers, plan.model)(config).eval()
    generator = torch.Generator().manual_seed(0)
    for path, part in model.named_parameters():
        if part.requires_grad:
            part.data.normal_(std=0.3, generator=generator)
            if "norm" in path.lower() and path.endswith("weight"):
                part.data += 1
    return model


LENGTHS = (7, 4)  # of the padded batch
SOURCE, L, NEW = max(LENGTHS), 5, 6


def inputs(model: Any, reads: str) -> dict[str, Any]:
    """A padded batch of what the model reads."""
    generator = torch.Generator().manual_seed(1)

    def ids(*shape: int) -> torch.Tensor:
        return torch.randint(3, 37, shape, generator=generator)

    def noise(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    if reads == "image":
        size = model.config.image_size
        return {"pixel_values": noise(2, 3, size, size)}
    if reads == "sound":
        return {"input_values": noise(2, 60)}
    if reads == "spectrogram":
        return {"input_values": noise(2, 12, 8)}
    mask = (torch.arange(SOURCE) < torch.tensor(LENGTHS)[:, None]).long()
    text = {"input_ids": ids(2, SOURCE), "attention_mask": mask}
    if reads == "mel":
        text = {"input_features": noise(2, 6, 20)}
    if reads == "text and image":
        text["pixel_values"] = noise(2, 3, 8, 8)
    if model.config.is_encoder_decoder:
        text["decoder_input_ids"] = ids(2, L)
    return text


def tensors(out: Any) -> list[torch.Tensor]:
    """Every tensor in an output, in order."""
    if isinstance(out, torch.Tensor):
        return [out]
    if hasattr(out, "to_tuple"):
        out = out.to_tuple()
    return [t for part in out for t in tensors(part)] if isinstance(out, tuple | list) else []


def same(a: Any, b: Any) -> bool:
    """Whether two outputs are equal to the bit, places without a value included."""
    ours, theirs = tensors(a), tensors(b)
    return len(ours) == len(theirs) and all(
        torch.equal(x.nan_to_num(), y.nan_to_num()) and torch.equal(x.isnan(), y.isnan())
        for x, y in zip(ours, theirs, strict=True)
    )


def returned(out: Any, is_both: bool) -> dict[str, list[torch.Tensor]]:
    """The weights that a model returns, by stack and kind, layer after layer."""
    parts = {"vision.self": getattr(out, "vision_model_output", None)}
    parts["encoder.self"] = getattr(out, "text_model_output", None)
    found = {kind: part.attentions for kind, part in parts.items() if part is not None}
    for kind, name in (
        ("encoder.self", "encoder_attentions"),
        ("decoder.self", "decoder_attentions"),
        ("decoder.cross", "cross_attentions"),
        ("self", "attentions"),
    ):
        if getattr(out, name, None) and not (is_both and kind == "self"):
            found[kind] = getattr(out, name)
    return {kind: [w for w in weights if w is not None] for kind, weights in found.items()}


def farthest(trace: Trace, weights: dict[str, list[torch.Tensor]], real: torch.Tensor) -> float:
    """The largest difference between derived weights and returned ones at real positions.

    `real` says for the padded text, (B, L), which of its tokens are.
    """
    by_kind: dict[str, list[Site]] = {}
    for site in trace:
        stack, *layer, kind = site.name.split(".")
        if not any(map(str.isdigit, layer)):  # a pooling head, whose weights no model returns
            continue
        by_kind.setdefault("self" if "self" in weights else f"{stack}.{kind}", []).append(site)
    unseen = {name.split(".")[0] for name in trace.run.refusals}
    weights = {kind: w for kind, w in weights.items() if kind.split(".")[0] not in unseen}
    assert {k: len(v) for k, v in by_kind.items()} == {k: len(v) for k, v in weights.items()}
    most = 0.0
    for kind, sites in by_kind.items():
        windows = [each.flatten(0, -4) for each in weights[kind]]  # are sequences of their own
        for site, theirs in zip(sites, windows, strict=True):
            for sequence in range(len(theirs)):
                ours = site.weights(sequence=sequence)
                ours = ours[..., ours.shape[-1] - theirs.shape[-1] :]  # without a sink
                assert ours.shape == theirs[sequence].shape
                apart = (ours - theirs[sequence]).abs().amax((0, 2))  # (L,)
                if len(apart) == real.shape[1] and len(theirs) == len(real):
                    apart = apart[real[sequence]]
                elif len(theirs) > len(real):  # windows may hold nothing but padding
                    apart = apart.where(ours.sum(-1).amin(0) > 0, 0.0)
                most = max(most, float(apart.max()))
    return most


def forward_apart(name: str, implementation: str) -> tuple[float, Trace]:
    """How far derived weights lie from those of eager attention; fails if watching changes bits."""
    model, oracle = built(name, implementation), built(name, "eager")
    given = inputs(model, ARCHITECTURES[name].reads)
    with torch.no_grad():
        before = model(**given)
        with watch(model) as trace:
            assert same(model(**given), before)
        assert same(model(**given), before)
        out = oracle(**given, output_attentions=True)
    real = given.get("attention_mask", torch.ones(2, SOURCE)).bool()
    return farthest(trace, returned(out, model.config.is_encoder_decoder), real), trace


def generate_apart(name: str, implementation: str, **options: Any) -> tuple[float, Trace]:
    """The same for a text that is generated step by step, against one pass over all of it."""
    model, oracle = built(name, implementation), built(name, "eager")
    given = inputs(model, ARCHITECTURES[name].reads)
    given.pop("decoder_input_ids", None)
    is_both = model.config.is_encoder_decoder
    if not is_both:
        given["attention_mask"] = given["attention_mask"].flip(1)
    options = {"max_new_tokens": NEW, "min_new_tokens": NEW, "do_sample": False, **options}
    if name == "whisper":
        options |= {"begin_suppress_tokens": None, "suppress_tokens": None}
    options |= {"return_dict_in_generate": True, "output_logits": True}
    before = model.generate(**given, **options)
    with watch(model) as trace:
        after = model.generate(**given, **options)
    assert torch.equal(after.sequences, before.sequences)
    assert same(after.logits, before.logits)
    text = trace.run.texts["tokens"].tokens
    if "num_beams" not in options:
        assert torch.equal(text, after.sequences[:, :-1])
    times = len(text) // 2
    whole = {k: v.repeat_interleave(times, 0) for k, v in given.items()}
    if is_both:
        whole["decoder_input_ids"], real = text, torch.ones_like(text, dtype=torch.bool)
        if text.shape[1] != SOURCE:
            real = whole.get("attention_mask", real).bool()
    else:
        mask = torch.nn.functional.pad(whole["attention_mask"], (0, NEW - 1), value=1)
        whole = {"input_ids": text, "attention_mask": mask}
        if "position_ids" in inspect.signature(oracle.forward).parameters:
            whole["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)
        real = mask.bool()
    with torch.no_grad():
        out = oracle(**whole, output_attentions=True)
    assert len(trace.runs) == 1
    return farthest(trace, returned(out, is_both), real), trace


NOT_THERE = "does not support an attention implementation through"
TOLERANCE = 1e-5
OF_STEPS = 3e-5  # one token at a time: other products, whose sums are rounded in another order


def folder(name: str) -> str:
    """The model folder of transformers that an architecture belongs to."""
    import transformers

    return getattr(transformers, ARCHITECTURES[name].model).__module__.split(".")[2]
