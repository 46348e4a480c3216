"""What the KV cache of a model keeps, and what it would keep with another kind of attention."""

from collections.abc import Callable

from glassformer.languages import Language
from glassformer.models.description import describe
from glassformer.models.presets import PRESETS
from glassformer.school.learn.bars import Bars
from glassformer.school.learn.picture import Album, Picture

_MODELS = ("gpt-3-175b", "llama-3.1-8b", "llama-3.1-405b", "deepseek-v2-lite")
_BYTES, _LENGTH = 2, 131_072  # bfloat16; the text for which totals are given


def _cache_sizes(language: Language) -> Picture:
    """A bar for each kind of attention, by model; one of them is how the model was published."""
    return Album(tuple((name, _kinds(name, language)) for name in _MODELS))


def _kinds(name: str, language: Language) -> Bars:
    config, say = PRESETS[name], language.say
    own = describe(name).cache_bytes_per_token
    width = config.value_dim
    numbers = {  # that a layer keeps of a token
        "learn.picture.cachesize.mha": 2 * config.n_heads * width,
        "learn.picture.cachesize.gqa": 2 * 8 * width,
        "learn.picture.cachesize.mqa": 2 * width,
        # DeepSeek-AI 2024, §2.1.4: of heads as wide as these
        "learn.picture.cachesize.mla": 4 * width + width // 2,
    }
    bars = []
    for kind, count in numbers.items():
        size = _BYTES * config.n_layers * count
        mark = " ←" if size == own else ""
        total = f"{size * _LENGTH / 2**30:,.1f} GiB"
        bars.append((say(kind), float(size), f"{size:,} B, {total}{mark}"))
    return Bars(tuple(bars), say("learn.picture.cachesize.title", n=f"{_LENGTH:,}"))


CACHE_PICTURES: dict[str, Callable[[Language], Picture]] = {"cache-sizes": _cache_sizes}
