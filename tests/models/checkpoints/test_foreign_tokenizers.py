"""Whole transformers folders, tokenizer and all: the same text in gives the same text out."""

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, processors

import glassformer as gf
from glassformer.models.checkpoints import load, save
from tiny_models import V, saved

transformers = pytest.importorskip("transformers")

WORDS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *"abcdefghijklmnopqrstuvwxyz", *".,;:!?"]
assert len(WORDS) == V


def letters(*, ends: bool) -> "transformers.PreTrainedTokenizerFast":
    """Each letter is a token; with `ends` a text is put between <s> and </s>."""
    backend = Backend(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    backend.decoder = decoders.Fuse()
    if ends:
        backend.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
    names = ("bos", "pad", "eos", "unk", "mask")
    roles = {f"{name}_token": word for name, word in zip(names, WORDS, strict=False)}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **roles)


@pytest.mark.parametrize("name", ["gpt2", "llama", "qwen3"])
def test_a_decoder_continues_as_theirs_does(name: str, tmp_path: Path) -> None:
    foreign, tokenizer = saved(name, tmp_path / "theirs"), letters(ends=False)
    tokenizer.save_pretrained(tmp_path / "theirs")
    batch = tokenizer("hello", return_tensors="pt")
    written = foreign.generate(
        batch["input_ids"], attention_mask=batch["attention_mask"], max_new_tokens=9
    )
    expected = tokenizer.decode(written[0, 5:], skip_special_tokens=True)
    ours = load(tmp_path / "theirs")
    assert ours.special.begin == 0 and ours.special.end == (2,) and ours.special.pad == 1
    assert gf.generate(ours, "hello", max_new_tokens=9) == expected
    save(ours, tmp_path / "back", layout="huggingface")
    assert gf.generate(load(tmp_path / "back"), "hello", max_new_tokens=9) == expected
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    assert again("hello")["input_ids"] == batch["input_ids"][0].tolist()
    assert again.eos_token == "</s>" and again.pad_token == "<pad>"


@pytest.mark.parametrize("name", ["bart", "t5"])
def test_an_encoder_decoder_translates_as_theirs_does(name: str, tmp_path: Path) -> None:
    foreign, tokenizer = saved(name, tmp_path / "theirs"), letters(ends=True)
    tokenizer.save_pretrained(tmp_path / "theirs")
    foreign.generation_config.forced_eos_token_id = None
    batch = tokenizer("hello", return_tensors="pt")
    written = foreign.generate(
        batch["input_ids"],
        attention_mask=batch["attention_mask"],
        max_new_tokens=9,
        use_cache=False,
        num_beams=1,
        do_sample=False,
    )
    expected = tokenizer.decode(written[0], skip_special_tokens=True)
    ours = load(tmp_path / "theirs")
    assert ours.special.start == (1,)
    assert gf.translate(ours, "hello", beams=1, max_new_tokens=9) == expected
    save(ours, tmp_path / "back", layout="huggingface")
    assert gf.translate(load(tmp_path / "back"), "hello", beams=1, max_new_tokens=9) == expected


@pytest.mark.parametrize("name", ["bert", "roberta", "modernbert"])
def test_an_encoder_fills_gaps_as_theirs_does(name: str, tmp_path: Path) -> None:
    foreign, tokenizer = saved(name, tmp_path / "theirs"), letters(ends=True)
    tokenizer.save_pretrained(tmp_path / "theirs")
    with torch.no_grad():
        logits = foreign(
            **{
                k: v
                for k, v in tokenizer("he<mask>lo", return_tensors="pt").items()
                if k != "token_type_ids"
            }
        ).logits
    best = logits[0, 3].softmax(-1).topk(4)
    ours = load(tmp_path / "theirs")
    (guesses,) = gf.fill(ours, "he[MASK]lo", k=4)
    assert [guess.token for guess in guesses] == best.indices.tolist()
    assert [guess.probability for guess in guesses] == pytest.approx(best.values.tolist(), abs=1e-5)


def test_what_generation_needs_is_read_from_where_it_stands(tmp_path: Path) -> None:
    saved("bart", tmp_path)
    letters(ends=True).save_pretrained(tmp_path)
    generation = json.loads((tmp_path / "generation_config.json").read_text())
    generation |= {
        "eos_token_id": [2, 30],
        "decoder_start_token_id": 2,
        "forced_bos_token_id": 0,
        "bad_words_ids": [[1], [5, 6]],
    }
    (tmp_path / "generation_config.json").write_text(json.dumps(generation))
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    model = load(tmp_path)
    assert model.special == gf.load(tmp_path).special
    assert model.special.as_dict() == {
        "begin": 0,
        "end": [2, 30],
        "pad": 1,
        "mask": 4,
        "start": [2, 0],
        "never": [1],
    }
    assert model.tokenizer.chat_template == "{{ messages[0]['content'] }}"
    save(model, tmp_path / "back", layout="bart")
    assert load(tmp_path / "back").special == model.special


def test_pooling_of_sentence_transformers(tmp_path: Path) -> None:
    saved("bert-bare", tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    modes = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(modes))
    assert load(tmp_path).config.output.pooling == "first"
    modes = {"pooling_mode_cls_token": False, "pooling_mode_max_tokens": True}
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(modes))
    with pytest.raises(gf.GlassformerError, match=r"says pooling_mode_max_tokens"):
        load(tmp_path)
