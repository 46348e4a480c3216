"""hf:// addresses, on a local cache laid out as the hub's, without a network."""

import hashlib
from pathlib import Path

import pytest

from glassformer.errors import CheckpointError
from glassformer.models.checkpoints import hub, load
from tiny_models import saved

pytest.importorskip("transformers")
pytest.importorskip("huggingface_hub")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with one model: blobs by hash, links to them by commit, branches by name."""
    import huggingface_hub.constants as constants

    saved("gpt2", tmp_path / "theirs")
    repo = tmp_path / "hub" / "models--tiny--gpt2"
    snapshot = repo / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (repo / "blobs").mkdir()
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(COMMIT)
    for path in (tmp_path / "theirs").iterdir():
        content = path.read_bytes()
        large = path.suffix == ".safetensors"  # those are named by sha256, small ones by git's sha1
        digest = (hashlib.sha256 if large else hashlib.sha1)(content).hexdigest()
        (repo / "blobs" / digest).write_bytes(content)
        (snapshot / path.name).symlink_to(repo / "blobs" / digest)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


@pytest.mark.parametrize("address", ["hf://tiny/gpt2", f"hf://tiny/gpt2@{COMMIT}"])
def test_a_cached_model_loads_offline(address: str, cache: Path) -> None:
    assert load(address).config.dim == 12


@pytest.mark.plain
def test_refusals(cache: Path) -> None:
    with pytest.raises(CheckpointError, match=r"not in the local cache.*HF_HUB_OFFLINE"):
        load("hf://tiny/other")
    with pytest.raises(CheckpointError, match=r"must read hf://ORG/NAME.*got 'hf://gpt2'"):
        load("hf://gpt2")
    with pytest.raises(CheckpointError, match=r"not in the local cache"):
        load("hf://tiny/gpt2/model.gguf")


def test_a_damaged_blob_is_noticed(cache: Path) -> None:
    (weights,) = cache.glob("**/snapshots/*/model.safetensors")
    content = bytearray(weights.read_bytes())
    content[-5] ^= 1  # in the last tensor: nothing else could tell
    weights.resolve().write_bytes(bytes(content))
    with pytest.raises(CheckpointError, match=r"its hash does not fit its name in the cache"):
        load("hf://tiny/gpt2")


@pytest.mark.plain
def test_without_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(CheckpointError, match=r"needs the package huggingface_hub.*\[hub\]"):
        hub.fetch("hf://tiny/gpt2")
