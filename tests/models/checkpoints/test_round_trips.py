"""Every family that can be read, in every layout that can be written: the same model again."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from glassformer.errors import CheckpointError
from glassformer.models import Decoder, EncoderDecoder
from glassformer.models.checkpoints import load, save
from glassformer.models.config import Dropout
from tiny_models import MODELS, V, saved

pytest.importorskip("transformers")
pytest.importorskip("gguf")
# What a GGUF file has no field for, by model; all others must go through.
REFUSED = {
    **dict.fromkeys(["bert", "bert-bare", "bert-classes"], r"this model is an encoder\."),
    **dict.fromkeys(["roberta", "roberta-bare", "roberta-classes"], r"this model is an encoder\."),
    **dict.fromkeys([n for n in MODELS if n.startswith("modernbert")], r"is an encoder\."),
    "xlm-roberta": r"this model is an encoder\.",
    **dict.fromkeys(["bart", "marian", "t5", "t5-gated"], r"this model is an encoder-decoder\."),
    "gpt2": r"positions.kind is 'learned', it would become 'rotary'|activation is 'gelu_tanh'",
    "gpt2-untied": r"activation is 'relu', it would become 'silu'",
    "llama-tied": r"must be the scaling of Llama 3",  # bands of another length
    "llama-biases": r"biases is 'all', it would become 'qkv'",
    **dict.fromkeys(["mixtral", "qwen3-moe", "qwen3-moe-dense"], r"experts is {.*become None"),
    **dict.fromkeys(["deepseek-v2", "deepseek-v2-groups"], r"of llama cannot hold a model like"),
    **dict.fromkeys(["deepseek-v3", "deepseek-v3-half"], r"of llama cannot hold a model like"),
    "mixtral-window": r"experts is {.*become None",
    "mistral": r"window is 4, it would become None",
    "qwen2-mixed": r"window is 4, it would become None",
    "qwen3-local": r"window is 3, it would become None",
    "qwen2-window": r"window is 4, it would become None",
    "qwen3-biases": r"biases is 'attention', it would become 'qkv'",
}
GGUF_KINDS = [name for name in MODELS if name not in REFUSED]


def assert_same_model(found, wanted) -> None:
    """Same config but for dropout, which is a matter of training; same bits, same logits."""
    for model in (found, wanted):
        output = replace(model.config.output, pooling="mean")
        model.compared = model.config.replace(dropout=Dropout(), output=output)
    assert found.compared == wanted.compared
    assert found.special == wanted.special
    theirs = wanted.state_dict()
    assert found.state_dict().keys() == theirs.keys()
    for name, tensor in found.state_dict().items():
        assert tensor.dtype == theirs[name].dtype and torch.equal(tensor, theirs[name]), name
    tokens = torch.randint(3, V, (2, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.equal(outputs(found, tokens), outputs(wanted, tokens))


def outputs(model, tokens: torch.Tensor) -> torch.Tensor:
    if isinstance(model, EncoderDecoder):
        return model(tokens, tokens)
    return model(tokens)


@pytest.mark.parametrize("name", MODELS)
def test_every_family_in_every_layout(name: str, tmp_path: Path) -> None:
    foreign = saved(name, tmp_path / "theirs")
    model = load(tmp_path / "theirs")
    for layout in ("glassformer", "huggingface", foreign.config.model_type):
        save(model, tmp_path / layout, layout=layout)
        assert_same_model(load(tmp_path / layout), model)
    path = tmp_path / "tiny.gguf"
    if name in REFUSED:
        with pytest.raises(CheckpointError, match=REFUSED[name]) as caught:
            save(model, path, layout="gguf")
        assert "\n" not in str(caught.value) and not path.exists()
    else:
        save(model, path, layout="gguf")
        assert_same_model(load(path), model)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", GGUF_KINDS)
def test_narrow_weights_keep_their_bits(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    saved(name, tmp_path / "theirs")
    model = load(tmp_path / "theirs", dtype=dtype)
    save(model, tmp_path / "tiny.gguf", layout="gguf")
    assert_same_model(load(tmp_path / "tiny.gguf", dtype=dtype), model)


@pytest.mark.parametrize("name", GGUF_KINDS)
def test_a_gguf_file_in_every_layout(name: str, tmp_path: Path) -> None:
    saved(name, tmp_path / "theirs")
    save(load(tmp_path / "theirs"), tmp_path / "first.gguf", layout="gguf")
    model = load(tmp_path / "first.gguf")
    assert isinstance(model, Decoder)
    for layout in ("glassformer", "huggingface"):
        save(model, tmp_path / layout, layout=layout)
        assert_same_model(load(tmp_path / layout), model)
    save(model, tmp_path / "first.gguf", layout="gguf", overwrite=True)
    assert_same_model(load(tmp_path / "first.gguf"), model)
