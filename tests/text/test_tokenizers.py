"""Tokenizers of every kind of folder: the ids are those that transformers gives."""

import base64
import json
import struct
from pathlib import Path

import pytest
from tokenizers import AddedToken, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from glassformer.errors import CheckpointError, DataError
from glassformer.text import SpecialTokens, read_tokenizer
from glassformer.text.chat import as_chat
from glassformer.text.ggml_export import header_of_tokenizer
from glassformer.text.tokenizer import JsonTokenizer

TEXTS = [
    "The cat sat on the mat.",
    "  two  spaces, Ünïcödé, 42 numbers\nand a line",
    "我 爱 你 🙂",
    "don't stop",
    "",
]


def byte_level(special: list[str]) -> Backend:
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(TEXTS * 3, trainer)
    return backend


def test_a_tokenizer_json_comes_back(tmp_path: Path) -> None:
    backend = byte_level(["<end>"])
    for name, content in JsonTokenizer(backend).files().items():
        (tmp_path / name).write_bytes(content)
    tokenizer = read_tokenizer(tmp_path)
    for text in TEXTS:
        ids = tokenizer.encode(text)
        assert ids == backend.encode(text).ids
        assert tokenizer.decode(ids) == text
    assert tokenizer.id_of("<end>") == 0 and tokenizer.piece(0) == "<end>"
    assert tokenizer.id_of("nowhere") is None and tokenizer.piece(9999) == "<9999>"
    assert tokenizer.decode([0]) == ""
    assert tokenizer.vocab_size == backend.get_vocab_size()


def test_padding_and_truncation_in_a_file_are_not_ours() -> None:
    backend = byte_level(["<pad>"])
    backend.enable_truncation(2)
    backend.enable_padding(length=9)
    tokenizer = JsonTokenizer(backend)
    assert tokenizer.decode(tokenizer.encode(TEXTS[0])) == TEXTS[0]


@pytest.mark.parametrize("lower", [True, False])
def test_a_vocabulary_of_word_pieces(lower: bool, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "The", "ca", "##t", "sa", "on"]
    pieces += ["mat", ".", "##c", "我", "4", "##2", "un", "##icode"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    settings = {"do_lower_case": lower}
    ours = read_tokenizer(tmp_path, settings)
    theirs = transformers.BertTokenizer(
        vocab={piece: i for i, piece in enumerate(pieces)}, do_lower_case=lower
    )
    for text in [*TEXTS, "the [MASK] sat"]:
        assert ours.encode(text) == theirs(text)["input_ids"]
    assert ours.decode(ours.encode("the cat")) == "the cat"


@pytest.mark.parametrize("kind", ["gpt2", "roberta"])
def test_merges_of_byte_pairs(kind: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    special = ["<|endoftext|>"] if kind == "gpt2" else ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    backend = byte_level(special)
    backend.model.save(str(tmp_path))
    ours = read_tokenizer(tmp_path)
    vocab = json.loads((tmp_path / "vocab.json").read_text())
    merges = [tuple(x.split()) for x in (tmp_path / "merges.txt").read_text().splitlines()[1:]]
    if kind == "gpt2":
        theirs = transformers.GPT2Tokenizer(vocab=vocab, merges=merges)
    else:  # the published ones take the space before a gap into it
        gap = AddedToken("<mask>", lstrip=True)
        theirs = transformers.RobertaTokenizer(vocab=vocab, merges=merges, mask_token=gap)
    for text in [*TEXTS, "the <mask> sat", "end<|endoftext|>"]:
        assert ours.encode(text) == theirs(text)["input_ids"], text
    assert ours.decode(ours.encode(TEXTS[1])) == TEXTS[1]


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    assert read_tokenizer(tmp_path) is None


@pytest.mark.plain
def test_damaged_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"model": 3}')
    with pytest.raises(CheckpointError, match=r"tokenizer.json is not a tokenizer"):
        read_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.txt").write_text("a\nb\n[UNK]")
    with pytest.raises(
        CheckpointError, match=r"vocab.txt must have the token \[CLS\]; it does not"
    ):
        read_tokenizer(tmp_path)
    (tmp_path / "vocab.txt").unlink()
    (tmp_path / "vocab.json").write_text("{}")
    (tmp_path / "merges.txt").write_text("a b")
    with pytest.raises(CheckpointError, match=r"merges.txt is not a vocabulary"):
        read_tokenizer(tmp_path)


@pytest.fixture(scope="module")
def marian_folder(tmp_path_factory) -> Path:
    """Two SentencePiece models and their joint vocabulary, as Marian's folders hold them."""
    sentencepiece = pytest.importorskip("sentencepiece")
    folder = tmp_path_factory.mktemp("marian")
    corpora = {"source": ["the cat sat on the mat"], "target": ["die Katze saß auf der Matte"]}
    pieces = ["</s>", "<unk>", ">>deu<<"]
    for side, lines in corpora.items():
        (folder / f"{side}.txt").write_text("\n".join(lines * 20), encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            input=str(folder / f"{side}.txt"),
            model_prefix=str(folder / side),
            vocab_size=34,
            character_coverage=1.0,
            minloglevel=2,
            hard_vocab_limit=False,
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        loaded = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        pieces += [loaded.id_to_piece(i) for i in range(3, len(loaded))]
    unique = [*dict.fromkeys(pieces), "<pad>"]
    ids = {piece: i for i, piece in enumerate(unique)}
    (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    return folder


def test_marian_reads_and_writes_two_languages(marian_folder: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("sacremoses")
    ours = read_tokenizer(marian_folder)
    theirs = transformers.MarianTokenizer(
        *(str(marian_folder / name) for name in ("source.spm", "target.spm", "vocab.json"))
    )
    for text in ["the cat", "the mat sat on the cat", ">>deu<< the cat", "xyz", ""]:
        assert ours.encode(text) == theirs(text)["input_ids"], text
    german = [ours.id_of(p) for p in ("▁", "K", "a", "t", "z", "e") if ours.id_of(p) is not None]
    assert ours.decode([*german, 0]) == theirs.decode([*german, 0], skip_special_tokens=True)
    for name, content in ours.files().items():
        (tmp_path / name).write_bytes(content)
    assert read_tokenizer(tmp_path).encode("the cat") == ours.encode("the cat")
    with pytest.raises(CheckpointError, match=r"holds one vocabulary; .* of the kind marian"):
        header_of_tokenizer(ours, SpecialTokens(), ours.vocab_size)


@pytest.mark.plain
def test_marian_files_that_do_not_fit(marian_folder: Path, tmp_path: Path, monkeypatch) -> None:
    for name in ("source.spm", "target.spm", "vocab.json"):
        (tmp_path / name).write_bytes((marian_folder / name).read_bytes())
    (tmp_path / "source.spm").write_bytes(b"nonsense")
    with pytest.raises(CheckpointError, match=r"source.spm of .* is damaged"):
        read_tokenizer(tmp_path).encode("the cat")
    (tmp_path / "vocab.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"vocab.json of .* must give ids to the pieces"):
        read_tokenizer(tmp_path)
    import sys

    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(
        CheckpointError, match=r"needs the package sentencepiece.*\[sentencepiece\]"
    ):
        read_tokenizer(marian_folder).encode("the cat")


def test_special_tokens_come_back_from_json() -> None:
    special = SpecialTokens(begin=1, end=(2, 3), start=(4,), never=(0,))
    assert SpecialTokens.from_dict(json.loads(json.dumps(special.as_dict()))) == special


CHAT = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{{ eos_token }}{% endfor %}"


@pytest.mark.plain
def test_a_question_in_the_models_own_form() -> None:
    tokenizer = JsonTokenizer(byte_level(["<end>"]), chat_template=CHAT + "<answer>")
    assert as_chat("Why?", tokenizer, SpecialTokens(end=(0,))) == "<user>Why?<end><answer>"
    tokenizer.chat_template = "{{ messages.__class__.__mro__[1].__subclasses__() }}"
    with pytest.raises(CheckpointError, match=r"chat template cannot be used"):
        as_chat("Why?", tokenizer, SpecialTokens())
    tokenizer.chat_template = None
    with pytest.raises(CheckpointError, match=r"this one has none. Give it the beginning"):
        as_chat("Why?", tokenizer, SpecialTokens())


@pytest.mark.plain
def test_a_device_is_no_vocabulary(marian_folder: Path, tmp_path: Path) -> None:
    for name in ("source.spm", "vocab.json"):
        (tmp_path / name).write_bytes((marian_folder / name).read_bytes())
    (tmp_path / "target.spm").symlink_to("/dev/zero")
    with pytest.raises(CheckpointError, match=r"target.spm cannot be read: it is not a regular"):
        read_tokenizer(tmp_path)


def replacing(content: str) -> dict:
    return {"type": "Replace", "pattern": {"String": "a"}, "content": content}


@pytest.mark.plain
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model": 3}, r"it must be an object with a model"),
        (
            {"normalizer": {"type": "Sequence", "normalizers": [replacing("a" * 50)] * 9}},
            r"The normalizer in .* must not lengthen texts much; .* 1\.95e\+15 times",
        ),
        (
            {
                "post_processor": {
                    "type": "TemplateProcessing",
                    "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 1000,
                    "pair": [],
                    "special_tokens": {},
                }
            },
            r"The post_processor in .* times as long",
        ),
        (
            {"added_tokens": [{"id": 1, "content": "x" * 10**6}]},
            r"at most 4,096 characters; one is",
        ),
        ({"added_tokens": [{"id": -1, "content": "x"}]}, r"an added token without an id"),
        ({"added_tokens": 3}, r"added_tokens in .* must be a list; it is 3"),
        (
            {"model": {"type": "WordLevel", "vocab": {"a": 2**40}, "unk_token": "a"}},
            r"must have ids from 0 up; one has 1099511627776",
        ),
        (
            {"model": {"type": "WordPiece", "vocab": {}, "max_input_chars_per_word": 2**60}},
            r"max_input_chars_per_word in .* must be below 65,536",
        ),
        (
            {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "//////////8AAAAA"}},
            r"precompiled_charsmap in .* must be a table of characters",
        ),
    ],
)
def test_files_that_would_unfold(changes: dict, sentence: str) -> None:
    plain = json.loads(Backend(models.WordLevel({"a": 0}, unk_token="a")).to_str())
    with pytest.raises(CheckpointError, match=sentence):
        JsonTokenizer.from_json(json.dumps({**plain, **changes}), "tokenizer.json")


@pytest.mark.plain
def test_a_panic_of_the_library_is_a_sentence(capfd) -> None:
    """A table of characters that ends within an entry: the library stops with a Rust panic."""
    plain = json.loads(Backend(models.WordLevel({"a": 0}, unk_token="a")).to_str())
    charsmap = base64.b64encode(struct.pack("<I", 8) + b"\xff" * 8).decode()
    plain["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": charsmap}
    with pytest.raises((CheckpointError, DataError), match=r"^[^\n]+$"):
        JsonTokenizer.from_json(json.dumps(plain), "tokenizer.json").encode("a text")
    assert "panicked" in capfd.readouterr().err  # what the library itself prints
