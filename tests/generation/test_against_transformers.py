"""The same weights write the same text here and in transformers: greedy, penalised, with beams."""

from pathlib import Path

import pytest
import torch

from glassformer.generation import Sampling, beam_search, generate_tokens
from glassformer.models.checkpoints import load
from tiny_models import saved

pytest.importorskip("transformers")

PROMPTS = [[3, 14, 15], [9, 2, 6, 5, 35], [8]]
SOURCES = [[7, 18, 28, 2], [18, 2], [28, 4, 5, 9, 2]]
DECODERS = [
    "gpt2",
    "gpt2-untied",
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "mixtral",
    "qwen3-moe",
    "deepseek-v2",
    "deepseek-v3",
]
BOTH = ["bart", "marian", "t5", "t5-gated"]
ENDS, PAD, N = [2, 5, 11, 17, 23, 29, 31, 36], 1, 9


def padded(texts: list[list[int]], *, left: bool) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(map(len, texts))
    fill = [[PAD] * (longest - len(text)) for text in texts]
    rows = [f + t if left else t + f for f, t in zip(fill, texts, strict=True)]
    mask = [[0] * len(f) + [1] * len(t) for f, t in zip(fill, texts, strict=True)]
    if not left:
        mask = [row[::-1] for row in mask]
    return torch.tensor(rows), torch.tensor(mask)


def theirs(foreign, name: str, **options) -> list[list[int]]:
    foreign.generation_config.forced_eos_token_id = None
    if name.startswith("t5"):  # whose cache forgets that its decoder has more layers
        options["use_cache"] = False
    options = {
        "max_new_tokens": N,
        "do_sample": False,
        "num_beams": 1,
        "eos_token_id": ENDS,
        **options,
    }
    if name in DECODERS:
        tokens, mask = padded(PROMPTS, left=True)
        written = foreign.generate(tokens, attention_mask=mask, pad_token_id=PAD, **options)
        written = written[:, tokens.shape[1] :]
    else:
        tokens, mask = padded(SOURCES, left=False)
        written = foreign.generate(tokens, attention_mask=mask, pad_token_id=PAD, **options)[:, 1:]
    texts = [row.tolist() for row in written]
    return [until_end(row) for row in texts]


def until_end(row: list[int]) -> list[int]:
    return row[: next((i for i, token in enumerate(row) if token in ENDS), len(row))]


def told(name: str) -> dict:
    if name in DECODERS:
        return {"prompts": PROMPTS, "max_new_tokens": N, "stop": ENDS}
    return {"prompts": [[1]] * 3, "source": SOURCES, "max_new_tokens": N, "stop": ENDS}


@pytest.mark.parametrize("name", DECODERS + BOTH)
def test_greedy(name: str, tmp_path: Path) -> None:
    foreign = saved(name, tmp_path)
    assert generate_tokens(load(tmp_path), **told(name)) == theirs(foreign, name)


@pytest.mark.parametrize("name", ["gpt2-untied", "llama"])
def test_greedy_with_a_penalty(name: str, tmp_path: Path) -> None:
    foreign = saved(name, tmp_path)
    sampling = Sampling(temperature=0, repetition_penalty=1.7)
    ours = generate_tokens(load(tmp_path), **told(name), sampling=sampling)
    alone = [
        foreign.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            pad_token_id=PAD,
            do_sample=False,
            max_new_tokens=N,
            repetition_penalty=1.7,
            eos_token_id=ENDS,
        )[0, len(prompt) :].tolist()
        for prompt in PROMPTS
    ]
    assert ours == [until_end(row) for row in alone]


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("name", ["t5", "t5-gated", "llama"])
def test_beams(name: str, penalty: float, tmp_path: Path) -> None:
    """Where they end: a text that was cut off may win there, and never does here."""
    foreign = saved(name, tmp_path)
    options = {"num_beams": 3, "length_penalty": penalty, "early_stopping": True}
    expected = theirs(foreign, name, **options, max_new_tokens=14)
    found = beam_search(
        load(tmp_path), **(told(name) | {"max_new_tokens": 14}), beams=3, length_penalty=penalty
    )
    assert min(map(len, expected)) < 14
    for best, text in zip(found, expected, strict=True):
        if len(text) < 14:
            assert list(best[0].tokens) == text
