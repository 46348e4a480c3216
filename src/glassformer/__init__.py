"""glassformer: Transformers you can see through.

Names are resolved on first use, so that `import glassformer`, and with it every help screen of the
command line, does not load torch. Type checkers and editors read the imports below.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glassformer.analysis import (
        AffineLens,
        attribute,
        bisect,
        circuits,
        compare,
        fit_jacobian_lens,
        head_effects,
        head_scores,
        logit_lens,
        roles,
        sweep,
        train_lens,
        why,
    )
    from glassformer.errors import GlassformerError, RecordingWarning
    from glassformer.functional import (
        ALiBi,
        Bias,
        Causal,
        Documents,
        Explicit,
        ExplicitBias,
        Mask,
        Packed,
        Padding,
        Prefix,
        RelativeBuckets,
        Sequences,
        Window,
        attention,
        attention_lse,
        attention_statistics,
        attention_tile,
        attention_weights,
        cell_arithmetic,
        explain,
        from_torch_mha,
        memory_budget,
        row_arithmetic,
    )
    from glassformer.generation import embed, fill, generate, stream, translate
    from glassformer.models import (
        Config,
        add_lora,
        build,
        load_lora,
        merge_lora,
        quantize,
        save_lora,
        watch_routing,
    )
    from glassformer.models.checkpoints import load, save
    from glassformer.tracing import (
        Ablate,
        Freeze,
        Knockout,
        Patch,
        Scale,
        Skip,
        Steer,
        Swap,
        Trace,
        change,
        load_changes,
        record,
        rerun,
        save_changes,
        watch,
    )
    from glassformer.training import Recipe, train

__version__ = "0.1.0"

# Where each public name is defined. tests/test_package.py holds this table, the imports above and
# __all__ against each other.
_HOMES = {
    "ALiBi": "glassformer.functional",
    "Ablate": "glassformer.tracing",
    "AffineLens": "glassformer.analysis",
    "Bias": "glassformer.functional",
    "Causal": "glassformer.functional",
    "Config": "glassformer.models",
    "Documents": "glassformer.functional",
    "Explicit": "glassformer.functional",
    "ExplicitBias": "glassformer.functional",
    "Freeze": "glassformer.tracing",
    "GlassformerError": "glassformer.errors",
    "Knockout": "glassformer.tracing",
    "Mask": "glassformer.functional",
    "Packed": "glassformer.functional",
    "Padding": "glassformer.functional",
    "Patch": "glassformer.tracing",
    "Prefix": "glassformer.functional",
    "Recipe": "glassformer.training",
    "RecordingWarning": "glassformer.errors",
    "RelativeBuckets": "glassformer.functional",
    "Scale": "glassformer.tracing",
    "Sequences": "glassformer.functional",
    "Skip": "glassformer.tracing",
    "Steer": "glassformer.tracing",
    "Swap": "glassformer.tracing",
    "Trace": "glassformer.tracing",
    "Window": "glassformer.functional",
    "add_lora": "glassformer.models",
    "attention": "glassformer.functional",
    "attention_lse": "glassformer.functional",
    "attention_statistics": "glassformer.functional",
    "attention_tile": "glassformer.functional",
    "attention_weights": "glassformer.functional",
    "attribute": "glassformer.analysis",
    "bisect": "glassformer.analysis",
    "build": "glassformer.models",
    "cell_arithmetic": "glassformer.functional",
    "change": "glassformer.tracing",
    "circuits": "glassformer.analysis",
    "compare": "glassformer.analysis",
    "embed": "glassformer.generation",
    "explain": "glassformer.functional",
    "fill": "glassformer.generation",
    "fit_jacobian_lens": "glassformer.analysis",
    "from_torch_mha": "glassformer.functional",
    "generate": "glassformer.generation",
    "head_effects": "glassformer.analysis",
    "head_scores": "glassformer.analysis",
    "load": "glassformer.models.checkpoints",
    "load_changes": "glassformer.tracing",
    "load_lora": "glassformer.models",
    "logit_lens": "glassformer.analysis",
    "memory_budget": "glassformer.functional",
    "merge_lora": "glassformer.models",
    "quantize": "glassformer.models",
    "record": "glassformer.tracing",
    "rerun": "glassformer.tracing",
    "roles": "glassformer.analysis",
    "row_arithmetic": "glassformer.functional",
    "save": "glassformer.models.checkpoints",
    "save_changes": "glassformer.tracing",
    "save_lora": "glassformer.models",
    "stream": "glassformer.generation",
    "sweep": "glassformer.analysis",
    "train": "glassformer.training",
    "train_lens": "glassformer.analysis",
    "translate": "glassformer.generation",
    "watch": "glassformer.tracing",
    "watch_routing": "glassformer.models",
    "why": "glassformer.analysis",
}


# What `gf.layers` and its like give, without an import of their own.
_PACKAGES = {
    "analysis",
    "errors",
    "functional",
    "generation",
    "languages",
    "layers",
    "models",
    "render",
    "text",
    "tracing",
    "training",
}


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value  # found without this function from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PACKAGES, *__all__})


__all__ = [
    "ALiBi",
    "Ablate",
    "AffineLens",
    "Bias",
    "Causal",
    "Config",
    "Documents",
    "Explicit",
    "ExplicitBias",
    "Freeze",
    "GlassformerError",
    "Knockout",
    "Mask",
    "Packed",
    "Padding",
    "Patch",
    "Prefix",
    "Recipe",
    "RecordingWarning",
    "RelativeBuckets",
    "Scale",
    "Sequences",
    "Skip",
    "Steer",
    "Swap",
    "Trace",
    "Window",
    "add_lora",
    "attention",
    "attention_lse",
    "attention_statistics",
    "attention_tile",
    "attention_weights",
    "attribute",
    "bisect",
    "build",
    "cell_arithmetic",
    "change",
    "circuits",
    "compare",
    "embed",
    "explain",
    "fill",
    "fit_jacobian_lens",
    "from_torch_mha",
    "generate",
    "head_effects",
    "head_scores",
    "load",
    "load_changes",
    "load_lora",
    "logit_lens",
    "memory_budget",
    "merge_lora",
    "quantize",
    "record",
    "rerun",
    "roles",
    "row_arithmetic",
    "save",
    "save_changes",
    "save_lora",
    "stream",
    "sweep",
    "train",
    "train_lens",
    "translate",
    "watch",
    "watch_routing",
    "why",
]
