"""Our own folders: what is saved comes back, whole or not at all, and damage is always noticed."""

import json
import random
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer as Backend
from tokenizers import models as token_models

from closeness import assert_same
from glassformer.errors import CheckpointError, DataError
from glassformer.models import Config, Dropout, Norms, Output, Positions, build
from glassformer.models.checkpoints import load, load_config, save
from glassformer.text import SpecialTokens
from glassformer.text.tokenizer import JsonTokenizer

SMALL = {"vocab_size": 13, "dim": 8, "n_layers": 2, "n_heads": 2, "max_len": 16}
families = pytest.mark.parametrize("family", ["encoder", "decoder", "encoder_decoder"])


def model(family: str = "decoder", **changes):
    built = build(Config(**{"family": family, **SMALL, **changes})).eval()
    built.special = SpecialTokens(begin=1, end=(2, 3), pad=0)
    words = {f"w{i}": i for i in range(13)}
    built.tokenizer = JsonTokenizer(
        Backend(token_models.WordLevel(words, unk_token="w0")), chat_template="{{ messages }}"
    )
    return built


def assert_equal_models(a, b) -> None:
    assert a.config == b.config
    assert a.special == b.special
    assert (a.tokenizer is None) == (b.tokenizer is None)
    if a.tokenizer is not None:
        assert a.tokenizer.encode("w3") == b.tokenizer.encode("w3") == [3]
        assert a.tokenizer.chat_template == b.tokenizer.chat_template
    left, right = a.state_dict(), b.state_dict()
    assert list(left) == list(right)
    for name in left:
        assert_same(left[name], right[name])


@families
def test_what_is_saved_comes_back(family: str, tmp_path: Path) -> None:
    saved = model(
        family,
        positions=Positions(kind="relative", n_buckets=8),
        norms=Norms(kind="rms", place="post"),
        dropout=Dropout.everywhere(0.1),
        output=Output(classes=("no", "yes"), pooling="first"),
    )
    save(saved, tmp_path / "model")
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    assert {p.stat().st_mode & 0o777 for p in (tmp_path / "model").iterdir()} == {0o644}
    assert_equal_models(load(tmp_path / "model"), saved)
    assert load_config(tmp_path / "model") == saved.config
    assert [p.name for p in tmp_path.iterdir()] == ["model"]  # nothing is left beside it


def test_dtype_is_kept_or_changed(tmp_path: Path) -> None:
    save(model().to(torch.bfloat16), tmp_path / "half")
    assert load(tmp_path / "half").embedding.weight.dtype == torch.bfloat16
    assert load(tmp_path / "half", dtype=torch.float32).embedding.weight.dtype == torch.float32


def test_overwriting_must_be_asked_for(tmp_path: Path) -> None:
    first, second = model(), model(n_layers=3)
    save(first, tmp_path / "model")
    with pytest.raises(CheckpointError, match=r"exists already. Save under another name, or with"):
        save(second, tmp_path / "model")
    assert_equal_models(load(tmp_path / "model"), first)
    save(second, tmp_path / "model", overwrite=True)
    assert_equal_models(load(tmp_path / "model"), second)
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("…")
    with pytest.raises(CheckpointError, match=r"holds something else. Save under another name"):
        save(first, tmp_path / "precious", overwrite=True)
    assert (tmp_path / "precious" / "thesis.txt").exists()


def test_an_interrupted_save_leaves_the_old_model(tmp_path: Path, monkeypatch) -> None:
    from glassformer.models.checkpoints import own

    first = model()
    save(first, tmp_path / "model")

    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(own, "sha256", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(model(n_layers=3), tmp_path / "model", overwrite=True)
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert_equal_models(load(tmp_path / "model"), first)


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    """A limit on file sizes stands in for the disk: it breaks off the write of the weights."""
    code = f"""
import resource, signal, sys
from pathlib import Path
from glassformer.errors import CheckpointError, DataError
from glassformer.models import Config, build
from glassformer.models.checkpoints import save
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
model = build(Config(family="decoder", **{SMALL | {"vocab_size": 4000}!r}))
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
try:
    save(model, Path({str(tmp_path)!r}) / "model")
except CheckpointError as error:
    sys.stdout.write(str(error))
"""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "could not be written" in run.stdout, run.stderr
    assert not list(tmp_path.iterdir())


def test_a_process_killed_while_saving_leaves_the_old_model(tmp_path: Path) -> None:
    first = model()
    save(first, tmp_path / "model")
    code = f"""
import os, signal
from pathlib import Path
from glassformer.models import Config, build
from glassformer.models.checkpoints import own, save
own.sha256 = lambda path: os.kill(os.getpid(), signal.SIGKILL)
model = build(Config(family="decoder", **{SMALL!r}))
save(model, Path({str(tmp_path)!r}) / "model", overwrite=True)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert run.returncode == -9
    assert_equal_models(load(tmp_path / "model"), first)
    save(model(), tmp_path / "model", overwrite=True)  # the dead process is in nobody's way


def refusal(folder: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        load(folder)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert len(sentence) < 500
    return sentence


FILES = ("model.safetensors", "config.json", "tokenizer.json")


@pytest.mark.parametrize("name", FILES)
def test_truncation_anywhere_is_refused(name: str, tmp_path: Path) -> None:
    save(model(), tmp_path / "model")
    path = tmp_path / "model" / name
    content = path.read_bytes()
    offsets = random.Random(0).sample(range(len(content) - 1), k=100)
    for offset in [0, *offsets]:
        path.write_bytes(content[:offset])
        assert name in refusal(tmp_path / "model")


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_anywhere_is_refused_or_harmless(name: str, tmp_path: Path) -> None:
    """Harmless are spaces between the values of config.json alone."""
    saved = model()
    save(saved, tmp_path / "model")
    path = tmp_path / "model" / name
    content = path.read_bytes()
    chosen = random.Random(0)
    refused = 0
    for _ in range(150):
        flipped = bytearray(content)
        flipped[chosen.randrange(len(content))] ^= 1 << chosen.randrange(8)
        path.write_bytes(bytes(flipped))
        try:
            assert_equal_models(load(tmp_path / "model"), saved)
        except CheckpointError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused == 150 if name != "config.json" else refused > 75


def test_swapped_tensors_are_refused(tmp_path: Path) -> None:
    """Same names, same shapes, same bytes in another order: only the hash can tell."""
    save(model(), tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    tensors = load_file(path)
    a, b = "decoder.blocks.0.attention.qkv.weight", "decoder.blocks.1.attention.qkv.weight"
    tensors[a], tensors[b] = tensors[b], tensors[a]
    save_file(tensors, path, metadata={"format": "pt"})
    assert "hash does not fit" in refusal(tmp_path / "model")


def rewritten(folder: Path, change) -> None:
    """A folder whose hashes are right: what is left to check are names, shapes and fields."""
    from glassformer.models.checkpoints import own
    from glassformer.storage import sha256

    path = folder / "model.safetensors"
    tensors = load_file(path)
    described = json.loads((folder / "config.json").read_text())
    change(tensors, described)
    save_file(tensors, path)
    described["files"]["model.safetensors"] = sha256(path)
    described["sha256"] = own._digest(described)
    (folder / "config.json").write_text(json.dumps(described))


NORM = "decoder.final_norm.weight"


@pytest.mark.plain
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t, d: t.pop(NORM), f"lacks {NORM}."),
        (lambda t, d: t.update(extra=torch.zeros(1)), "has, unexpectedly, extra."),
        (lambda t, d: t.update({NORM: torch.ones(9)}), "must have shape (8,) by the config; the"),
        (lambda t, d: t.update({NORM: torch.ones(8).int()}), "must be of floating point; it is"),
        (lambda t, d: d.update(glassformer=3), "is of format 3; this glassformer reads up to 2"),
        (lambda t, d: d.update(glassformer="x"), "is of format 'x'"),
        (lambda t, d: d.update(config=3), "must hold the model's config; it holds 3"),
        (
            lambda t, d: d["config"].update(dim=7, head_dim=None),
            "describes no model: dim must be divisible by",
        ),
        (lambda t, d: d["config"].update(colour=7), "has no setting colour"),
        (lambda t, d: d["files"].update(other="0"), "must hold other, as config.json says"),
        (lambda t, d: d["special"].update(end=["x"]), "end.0 must be a whole number; got 'x'"),
        (lambda t, d: d["special"].update(odd=1), "has no setting odd"),
        (lambda t, d: d["special"].update(end=[99]), "must be below vocab_size=13; "),
        (lambda t, d: d["special"].update(begin=-1), "have -1"),
        (
            lambda t, d: d["config"].update(n_layers=9999),
            "A model of 9999 layers must have at least",
        ),
        (lambda t, d: d["config"].update(n_layers=10**9), "n_layers must be at most 10,000"),
        (lambda t, d: d["config"].update(hidden_dim=2**30), "must have shape (1073741824, 8) by"),
        (lambda t, d: d["config"].update(vocab_size=2**31 - 1, dim=2**31 - 2), "no memory could"),
        (lambda t, d: d["config"].update(norms={"eps": float("nan")}), "must be a finite number"),
        (lambda t, d: d["files"].update({"../config.json": "0"}), "must name files beside it"),
        (lambda t, d: d.update(files={"a": 1}), "must hold a, as config.json says"),
        (lambda t, d: d.update(tokenizer=3), "must be a table with a chat_template; it is 3"),
        (lambda t, d: t.update({NORM: torch.ones(1)}), "the saved tensor has (1,)"),
        (lambda t, d: t[NORM].fill_(float("nan")), f"{NORM} must hold finite numbers; the saved"),
        (lambda t, d: t[NORM].fill_(-float("inf")), f"{NORM} must hold finite numbers; the saved"),
    ],
)
def test_each_fault_is_named(change, sentence: str, tmp_path: Path) -> None:
    save(model(), tmp_path / "model")
    rewritten(tmp_path / "model", change)
    assert sentence in refusal(tmp_path / "model")


@pytest.mark.plain
def test_what_is_no_model(tmp_path: Path) -> None:
    assert "'nowhere' is not there" in refusal(Path("nowhere"))
    with pytest.raises(CheckpointError, match=r"'gpt-2' is a preset, which has no weights"):
        load("gpt-2")
    assert "must hold config.json" in refusal(tmp_path)
    (tmp_path / "tiny.gguf").write_bytes(b"")
    assert "Did you mean" in refusal(tmp_path)
    (tmp_path / "config.json").write_text("[1, 2]")
    assert "must hold a JSON object; it holds a list" in refusal(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert "it is neither" in refusal(tmp_path)
    (tmp_path / "config.json").write_text("{")
    assert "is not readable JSON" in refusal(tmp_path)
    assert "is another file. Give the folder" in refusal(tmp_path / "config.json")
    save(model(), tmp_path / "model")
    (tmp_path / "model" / "tokenizer.json").unlink()
    assert "must hold tokenizer.json" in refusal(tmp_path / "model")


def test_weights_that_are_not_finite_on_request(tmp_path: Path) -> None:
    save(model(), tmp_path / "model")
    rewritten(tmp_path / "model", lambda t, d: t[NORM].fill_(float("nan")))
    assert load(tmp_path / "model", allow_non_finite=True).state_dict()[NORM].isnan().all()


def test_a_token_that_must_never_be_written(tmp_path: Path) -> None:
    """Minus infinity in the bias of the logits is a way to forbid it."""
    saved = model(output=Output(bias=True))
    saved.head.bias.data[3] = -float("inf")
    save(saved, tmp_path / "model")
    assert_equal_models(load(tmp_path / "model"), saved)
    saved.head.bias.data[3] = float("inf")
    save(saved, tmp_path / "other")
    assert "head.bias must hold finite numbers; the saved tensor has inf" in refusal(
        tmp_path / "other"
    )


@pytest.mark.plain
def test_a_tokenizer_with_more_tokens_than_the_model(tmp_path: Path) -> None:
    words = {f"w{i}": i for i in range(14)}
    saved = model()
    saved.tokenizer = JsonTokenizer(Backend(token_models.WordLevel(words, unk_token="w0")))
    save(saved, tmp_path / "model")
    tokenizer = load(tmp_path / "model").tokenizer
    assert tokenizer.encode("w12") == [12]
    with pytest.raises(DataError, match=r"must be below 13, .*; its tokenizer gives 13"):
        tokenizer.encode("w13")
