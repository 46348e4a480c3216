"""The models and tokens on which tools are compared: one folder of weights that all of them read.

Families of transformers with tiny random weights, two layers each, and SmolLM2-135M. A folder holds
float32 weights and a tokenizer, as transformers saves them.
"""

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

TESTS = Path(__file__).parents[1] / "tests"
FAMILIES = {
    "GPT-2": "gpt2",
    "GPT-NeoX": "gpt-neox",
    "OPT": "opt",
    "Llama": "llama",
    "Mistral": "mistral",
    "Qwen2": "qwen2",
    "Gemma": "gemma",
    "Phi-3": "phi3",
}
FURTHER = {
    "Arcee": "arcee",
    "BLOOM": "bloom",
    "Cohere": "cohere",
    "Cohere-2": "cohere2",
    "ERNIE-4.5": "ernie4-5",
    "EXAONE-4": "exaone4",
    "Falcon": "falcon",
    "Gemma-2": "gemma2",
    "Gemma-3": "gemma3",
    "GLM": "glm",
    "GLM-4": "glm4",
    "GPT-BigCode": "gpt-bigcode",
    "GPT-J": "gptj",
    "GPT-Neo": "gpt-neo",
    "GPT-OSS": "gpt-oss",
    "Granite": "granite",
    "HunYuan": "hunyuan",
    "Llama-4": "llama4",
    "Mixtral": "mixtral",
    "MPT": "mpt",
    "Nemotron": "nemotron",
    "OLMo": "olmo",
    "OLMo-2": "olmo2",
    "OLMo-3": "olmo3",
    "Phi": "phi",
    "Qwen2-MoE": "qwen2-moe",
    "Qwen3": "qwen3",
    "Qwen3-MoE": "qwen3-moe",
    "Seed-OSS": "seed-oss",
    "SmolLM3": "smollm3",
    "StableLM": "stablelm",
    "Starcoder2": "starcoder2",
    "XGLM": "xglm",
}
FIELDS = {  # where the tiny config of our tests does not serve here
    "GPT-NeoX": {"num_key_value_heads": 6},  # no family of grouped heads, but the field is believed
    "Mistral": {"sliding_window": 10},  # reaches the earlier copy of a repeated token
    "Phi": {"num_key_value_heads": 6},
    "StableLM": {"hidden_size": 96},  # an even number of rotary features, as TransformerLens needs
}
SMOLLM2 = "SmolLM2-135M"
LOADED = "SmolLM2-135M, `gf.load`"
TEXT = "When Mary and John went to the store, John gave a drink to Mary. Then Mary gave it to"
CLEAN = "France is a country, and its capital is"  # differs from the other in its first token
CORRUPTED = "Italy is a country, and its capital is"


@dataclass(kw_only=True)
class Case:
    """One model, and what is asked of it. All tokens are (B, L)."""

    name: str
    folder: Path
    tokens: Tensor
    repeated: Tensor  # (1, 2n): random tokens, then the same again
    clean: Tensor  # what is patched from, (1, L)
    corrupted: Tensor  # and into
    layers: list[int]  # those in which heads are ablated
    patched_layers: list[int]
    rows: list[int]  # the positions at which logits are attributed
    targets: Tensor = field(default_factory=lambda: torch.empty(0))  # (L,), of the first sequence
    others: Tensor = field(default_factory=lambda: torch.empty(0))  # the second best
    answers: tuple[int, int] = (0, 0)  # the same two at the end of the clean text
    is_loaded: bool = False  # whether our side runs our own model, not the one of transformers
    is_large: bool = False  # whether changed runs go side by side, a sequence of a batch for each

    def choose_targets(self, logits: Tensor, clean: Tensor) -> None:
        """The two most probable tokens at each position of the first sequence."""
        self.targets, self.others = logits[0].topk(2).indices.unbind(-1)
        first, second = clean[0, -1].topk(2).indices.tolist()
        self.answers = first, second


def load_fused(folder: Path) -> Any:
    """The model of transformers, with eager attention only where it has no fused one."""
    from transformers import AutoModelForCausalLM

    try:
        return AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa").eval()
    except ValueError:
        return AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()


def tiny_case(name: str, root: Path) -> Case:
    """A tiny random model of a family, saved, and random tokens for it."""
    sys.path.insert(0, str(TESTS))
    from tiny_models import V
    from tracing.watched_architectures import ARCHITECTURES, built

    key = (FAMILIES | FURTHER)[name]
    plan = ARCHITECTURES[key]
    plan = replace(plan, fields=plan.fields | FIELDS.get(name, {}))
    model: Any = built(plan, "eager")
    folder = root / key
    model.save_pretrained(folder)
    _tokenizer(V).save_pretrained(folder)
    generator = torch.Generator().manual_seed(2)

    def draw(*shape: int) -> Tensor:
        return torch.randint(3, V, shape, generator=generator)

    n_layers, L = 2, 11
    return Case(
        name=name,
        folder=folder,
        tokens=draw(3, L),
        repeated=draw(1, 10).repeat(1, 2),
        clean=draw(1, L),
        corrupted=draw(1, L),
        layers=list(range(n_layers)),
        patched_layers=list(range(n_layers)),
        rows=list(range(L)),
    )


def _tokenizer(n: int) -> Any:
    """Token i reads "i": TransformerLens boots no model without a tokenizer."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({str(i): i for i in range(n)}, unk_token="3"))
    return PreTrainedTokenizerFast(
        tokenizer_object=words, bos_token="0", pad_token="1", eos_token="2", unk_token="3"
    )


def smollm2_cases(gguf: Path, root: Path) -> list[Case]:
    """The GGUF file, unpacked to float32 and saved as transformers reads it.

    One case for gf.watch on the model of transformers, one for our own model.
    """
    # Not gf.save: nnsight gives every object a method `save`, hence also a module that resolves
    # its names on first use.
    from glassformer.models.checkpoints import load, save

    model = load(gguf)
    folder = root / "smollm2"
    save(model, folder, layout="huggingface", overwrite=True)
    encode = model.tokenizer.encode
    texts = [torch.tensor([encode(text)]) for text in (TEXT, CLEAN, CORRUPTED)]
    generator = torch.Generator().manual_seed(2)
    repeated = torch.randint(100, 40_000, (1, 20), generator=generator).repeat(1, 2)
    case = Case(
        name=SMOLLM2,
        folder=folder,
        tokens=texts[0],
        repeated=repeated,
        clean=texts[1],
        corrupted=texts[2],
        layers=list(range(model.config.n_layers)),
        patched_layers=list(range(model.config.n_layers)),
        rows=list(range(texts[0].shape[1]))[-4:],
        is_large=True,
    )
    return [case, replace(case, name=LOADED, is_loaded=True)]
