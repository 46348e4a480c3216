"""Presets have exactly as many parameters as the models they are named after."""

import pytest
import torch

from glassformer.models import PRESETS, build

# As counted from the published checkpoints; GPT-3's follows from its architecture and gives the
# 174,600M of the paper.
PUBLISHED = {
    "bert-base": 109_514_298,  # with the masked-token head, without the pooler
    "bert-large": 335_174_458,
    "gpt-1": 116_534_784,
    "gpt-2": 124_439_808,
    "gpt-2-medium": 354_823_168,
    "gpt-2-large": 774_030_080,
    "gpt-2-xl": 1_557_611_200,
    "gpt-3-175b": 174_604_259_328,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "mistral-7b": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "deepseek-v2-lite": 15_706_484_224,
}


@pytest.mark.parametrize("name", PRESETS)
def test_parameters(name: str) -> None:
    model = build(name, device="meta")
    count = sum(p.numel() for p in set(model.parameters()))
    assert all(p.is_meta for p in model.parameters())
    assert count == PUBLISHED.get(name, count)
    assert count > 0


@pytest.mark.parametrize(
    ("name", "hugging_face"),
    [
        ("gpt-2", "GPT2"),
        ("bert-base", "Bert"),
        ("mistral-7b", "Mistral"),
        ("mixtral-8x7b", "Mixtral"),
    ],
)
def test_transformers_agrees_on_the_count(name: str, hugging_face: str) -> None:
    transformers = pytest.importorskip("transformers")
    named = {"GPT2": "GPT2LMHeadModel", "Bert": "BertForMaskedLM"}
    kind = named.get(hugging_face, f"{hugging_face}ForCausalLM")
    with torch.device("meta"):
        theirs = getattr(transformers, kind)(getattr(transformers, f"{hugging_face}Config")())
    assert sum(p.numel() for p in set(theirs.parameters())) == PUBLISHED[name]
