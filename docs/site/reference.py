"""The API reference: every public name, in groups that read as one would ask."""

import inspect

import glassformer

GROUPS = {
    "attention": {
        "en": "Attention",
        "zh": "注意力",
        "names": (
            "attention",
            "attention_weights",
            "attention_statistics",
            "attention_lse",
            "attention_tile",
            "Packed",
            "cell_arithmetic",
            "row_arithmetic",
            "explain",
            "memory_budget",
        ),
    },
    "masks": {
        "en": "Masks and biases",
        "zh": "掩码与偏置",
        "names": (
            "Mask",
            "Causal",
            "Window",
            "Padding",
            "Prefix",
            "Documents",
            "Sequences",
            "Explicit",
            "from_torch_mha",
            "Bias",
            "ALiBi",
            "RelativeBuckets",
            "ExplicitBias",
        ),
    },
    "watching": {
        "en": "Watching models",
        "zh": "观察模型",
        "names": (
            "watch",
            "watch_routing",
            "record",
            "Trace",
            "compare",
            "bisect",
            "roles",
        ),
    },
    "interventions": {
        "en": "Interventions",
        "zh": "干预",
        "names": (
            "change",
            "rerun",
            "sweep",
            "why",
            "Ablate",
            "Patch",
            "Scale",
            "Steer",
            "Skip",
            "Knockout",
            "Freeze",
            "Swap",
            "save_changes",
            "load_changes",
        ),
    },
    "analysis": {
        "en": "Asking why",
        "zh": "追问原因",
        "names": (
            "logit_lens",
            "AffineLens",
            "train_lens",
            "fit_jacobian_lens",
            "attribute",
            "circuits",
            "head_effects",
            "head_scores",
        ),
    },
    "models": {
        "en": "Models",
        "zh": "模型",
        "names": (
            "Config",
            "build",
            "load",
            "save",
            "quantize",
            "add_lora",
            "merge_lora",
            "save_lora",
            "load_lora",
        ),
    },
    "generation": {
        "en": "Generating text",
        "zh": "文本生成",
        "names": ("generate", "stream", "translate", "fill", "embed"),
    },
    "training": {"en": "Training", "zh": "训练", "names": ("train", "Recipe")},
    "errors": {"en": "Errors", "zh": "错误", "names": ("GlassformerError", "RecordingWarning")},
}


def reference_pages(code: str) -> dict[str, str]:
    """A page for each group, by its place on the site."""
    listed = {name for group in GROUPS.values() for name in group["names"]}
    missing = set(glassformer.__all__) ^ listed
    if missing:
        raise ValueError(
            f"Public names and the reference must agree; these do not: {sorted(missing)}."
        )
    return {
        f"reference/{key}.md": _page(str(group[code]), group["names"])
        for key, group in GROUPS.items()
    }


def _page(title: str, names: tuple[str, ...]) -> str:
    return f"# {title}\n\n" + "\n".join(_entry(name) for name in names)


def _entry(name: str) -> str:
    thing = getattr(glassformer, name)
    kind = "autoclass" if inspect.isclass(thing) else "autofunction"
    members = (
        "   :members:\n" if inspect.isclass(thing) and not issubclass(thing, Exception) else ""
    )
    return f"```{{eval-rst}}\n.. {kind}:: glassformer.{name}\n{members}```\n"
