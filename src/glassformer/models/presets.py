"""Known models as a table of configs: to build, to describe without memory, to compare.

Sources: Vaswani et al. 2017, table 3; Devlin et al. 2019, §3; Radford et al. 2018, §4.1, and 2019,
table 2; Brown et al. 2020, table 2.1 (where the XL row's 24 heads and the 13B row's width of 5,140
do not fit their head width of 128: 16 and 5,120 here); Grattafiori et al. 2024, table 3; Jiang et
al. 2023, table 1 (Mistral), and 2024, table 1 (Mixtral); DeepSeek-AI 2024, appendix B (V2-Lite).
"""

import math
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from glassformer.errors import ConfigError
from glassformer.functional.positions.rotary_scalings import BandedScaling, YaRNScaling
from glassformer.models.baselines import RecurrentConfig, RecurrentLanguage, RecurrentTranslator
from glassformer.models.config import Config, Dropout, Norms, Output, Positions
from glassformer.models.decoder import Decoder
from glassformer.models.encoder import Encoder
from glassformer.models.encoder_decoder import EncoderDecoder
from glassformer.models.variants import Experts, Latent
from glassformer.models.vision import VisionEncoder


def _paper(dim: int, n_heads: int, hidden_dim: int, dropout: float) -> Config:
    return Config(
        family="encoder_decoder",
        vocab_size=37_000,
        dim=dim,
        n_layers=6,
        n_heads=n_heads,
        hidden_dim=hidden_dim,
        max_len=1024,
        activation="relu",
        positions=Positions(kind="sinusoidal", layout="interleaved"),
        norms=Norms(place="post", final=False),
        dropout=Dropout(embedding=dropout, residual=dropout),
        scaled_embedding=True,
    )


def _bert(dim: int, n_layers: int, n_heads: int) -> Config:
    return Config(
        family="encoder",
        vocab_size=30_522,
        dim=dim,
        n_layers=n_layers,
        n_heads=n_heads,
        max_len=512,
        norms=Norms(place="post", final=False, embedding=True, eps=1e-12),
        dropout=Dropout(embedding=0.1, weights=0.1, residual=0.1),
        n_token_types=2,
    )


def _gpt(dim: int, n_layers: int, n_heads: int, max_len: int, vocab_size: int = 50_257) -> Config:
    return Config(
        family="decoder",
        vocab_size=vocab_size,
        dim=dim,
        n_layers=n_layers,
        n_heads=n_heads,
        max_len=max_len,
        activation="gelu_tanh",
        dropout=Dropout(embedding=0.1, weights=0.1, residual=0.1),
    )


def _llama(
    dim: int, n_layers: int, n_heads: int, hidden_dim: int, *, small: bool = False
) -> Config:
    scaling = BandedScaling(
        32.0 if small else 8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_len=8192
    )
    return Config(
        family="decoder",
        vocab_size=128_256,
        dim=dim,
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=8,
        hidden_dim=hidden_dim,
        max_len=131_072,
        activation="silu",
        gated=True,
        biases="none",
        positions=Positions(kind="rotary", base=500_000.0, scaling=scaling),
        norms=Norms(kind="rms", eps=1e-5),
        output=Output(tied=small),
    )


def _mistral(vocab_size: int, *, window: int | None, experts: Experts | None = None) -> Config:
    return Config(
        family="decoder",
        vocab_size=vocab_size,
        dim=4096,
        n_layers=32,
        n_heads=32,
        n_kv_heads=8,
        hidden_dim=14_336,
        max_len=32_768,
        activation="silu",
        gated=True,
        biases="none",
        positions=Positions(kind="rotary", base=10_000.0 if experts is None else 1_000_000.0),
        norms=Norms(kind="rms", eps=1e-5),
        output=Output(tied=False),
        window=window,
        experts=experts,
    )


def _deepseek_v2_lite() -> Config:
    yarn = YaRNScaling(40.0, original_len=4096, mscale=0.707, mscale_all_dim=0.707)
    return Config(
        family="decoder",
        vocab_size=102_400,
        dim=2048,
        n_layers=27,
        n_heads=16,
        head_dim=192,
        hidden_dim=10_944,
        max_len=163_840,
        activation="silu",
        gated=True,
        biases="none",
        positions=Positions(kind="rotary", layout="interleaved", scaling=yarn),
        norms=Norms(kind="rms", eps=1e-6),
        output=Output(tied=False),
        attention_scale=192**-0.5 * (0.1 * 0.707 * math.log(40) + 1) ** 2,  # YaRN's temperature
        experts=Experts(
            n_experts=64,
            n_active=6,
            hidden_dim=1408,
            n_shared=2,
            normalization="all",
            dense_layers=(0,),
        ),
        latent=Latent(kv_dim=512, rotary_dim=64, value_dim=128),
    )


def _laptop(family: str, dim: int, n_layers: int, n_heads: int, vocab_size: int) -> Config:
    return Config(
        family=family,  # type: ignore[arg-type]
        vocab_size=vocab_size,
        dim=dim,
        n_layers=n_layers,
        n_heads=n_heads,
        max_len=512,
        positions=Positions(kind="rotary"),
        dropout=Dropout.everywhere(0.1),
    )


PRESETS: dict[str, Config] = {
    "transformer-base": _paper(512, 8, 2048, 0.1),
    "transformer-big": _paper(1024, 16, 4096, 0.3),
    "bert-base": _bert(768, 12, 12),
    "bert-large": _bert(1024, 24, 16),
    "gpt-1": _gpt(768, 12, 12, 512, vocab_size=40_478).replace(
        norms=Norms(place="post", final=False)
    ),
    "gpt-2": _gpt(768, 12, 12, 1024),
    "gpt-2-medium": _gpt(1024, 24, 16, 1024),
    "gpt-2-large": _gpt(1280, 36, 20, 1024),
    "gpt-2-xl": _gpt(1600, 48, 25, 1024),
    "gpt-3-small": _gpt(768, 12, 12, 2048),
    "gpt-3-medium": _gpt(1024, 24, 16, 2048),
    "gpt-3-large": _gpt(1536, 24, 16, 2048),
    "gpt-3-xl": _gpt(2048, 24, 16, 2048),
    "gpt-3-2.7b": _gpt(2560, 32, 32, 2048),
    "gpt-3-6.7b": _gpt(4096, 32, 32, 2048),
    "gpt-3-13b": _gpt(5120, 40, 40, 2048),
    "gpt-3-175b": _gpt(12_288, 96, 96, 2048),
    "llama-3.2-1b": _llama(2048, 16, 32, 8192, small=True),
    "llama-3.2-3b": _llama(3072, 28, 24, 8192, small=True),
    "llama-3.1-8b": _llama(4096, 32, 32, 14_336),
    "llama-3.1-70b": _llama(8192, 80, 64, 28_672),
    "llama-3.1-405b": _llama(16_384, 126, 128, 53_248),
    "mistral-7b": _mistral(32_000, window=4096),
    "mixtral-8x7b": _mistral(
        32_000, window=None, experts=Experts(n_experts=8, n_active=2, hidden_dim=14_336)
    ),
    "deepseek-v2-lite": _deepseek_v2_lite(),
    "laptop-encoder": _laptop("encoder", 256, 4, 4, 8_000),
    "laptop-decoder": _laptop("decoder", 256, 6, 4, 8_000),
    "laptop-translator": _laptop("encoder_decoder", 256, 4, 4, 8_000),
}

FAMILIES: dict[str, type[nn.Module]] = {
    "encoder": Encoder,
    "decoder": Decoder,
    "encoder_decoder": EncoderDecoder,
    "vision": VisionEncoder,
}
BASELINES: dict[str, type[nn.Module]] = {
    "lstm": RecurrentLanguage,
    "lstm_seq2seq": RecurrentTranslator,
}


def build(
    config: Config | RecurrentConfig | str, *, device: torch.device | str | None = None
) -> nn.Module:
    """The model of a config or of a preset's name, freshly initialised; "meta" takes no memory.

    >>> build("gpt-2", device="meta").embedding.weight.shape
    torch.Size([50257, 768])
    """
    if isinstance(config, str):
        if config not in PRESETS:
            raise ConfigError(f"Presets are {', '.join(PRESETS)}; got {config!r}.")
        config = PRESETS[config]
    kind: Any = (FAMILIES | BASELINES)[config.family]
    if device is not None and torch.device(device).type == "meta":
        with torch.device("meta"), _Uninitialised():
            return kind(config)
    with torch.device("cpu" if device is None else device):
        return kind(config)


class _Uninitialised(TorchFunctionMode):
    """Leaves out the drawing of initial weights, which on "meta" loads PyTorch's compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.__name__ in ("normal_", "uniform_", "kaiming_uniform_"):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))
