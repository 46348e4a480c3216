"""What is written goes to the disk whole, and never over something that is not ours."""

import os
import socket
import stat
from pathlib import Path

import pytest

from glassformer.errors import CheckpointError, ConfigError
from glassformer.storage import atomic_file, atomic_folder, special_kind, write_atomically

KINDS = ["a folder", "a named pipe", "a socket"]


def make(kind: str, path: Path, monkeypatch) -> None:
    if kind == "a folder":
        path.mkdir()
    elif kind == "a named pipe":
        os.mkfifo(path)
    else:
        monkeypatch.chdir(path.parent)  # names of sockets are short
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)


@pytest.mark.parametrize("through", ["itself", "link"])
@pytest.mark.parametrize("kind", KINDS)
def test_only_regular_files_are_replaced(tmp_path, monkeypatch, kind, through):
    path = tmp_path / "thing"
    make(kind, path, monkeypatch)
    named = path if through == "itself" else tmp_path / "link"
    if through == "link":
        named.symlink_to(path)
    before = os.lstat(path)
    refusal = rf"{named.name} could not be written: it is {kind}, not a regular file\."
    with pytest.raises(ConfigError, match=refusal), atomic_file(named, ConfigError):
        raise AssertionError("nothing may be written")
    with pytest.raises(OSError, match=f"it is {kind}"):
        write_atomically(named, "text")
    after = os.lstat(path)
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted({path.name, named.name})


@pytest.mark.parametrize("mode", [stat.S_IFCHR, stat.S_IFBLK])
def test_a_device_is_never_replaced(tmp_path, monkeypatch, mode):
    """Its kind is pretended: no test goes near a device."""
    path = tmp_path / "disk"
    path.write_text("all of it")
    real = Path.stat

    def pretended(self, **options):
        found = real(self, **options)
        return os.stat_result((mode | 0o666, *found[1:])) if self.name == "disk" else found

    monkeypatch.setattr(Path, "stat", pretended)
    assert special_kind(path) == "a device"
    with pytest.raises(ConfigError, match="it is a device"), atomic_file(path, ConfigError):
        raise AssertionError("nothing may be written")
    monkeypatch.undo()
    assert path.read_text() == "all of it"


def test_a_link_keeps_its_place(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for text in ("new", "newer"):
        with atomic_file(tmp_path / "link") as new:
            new.write_text(text)
        assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == text


@pytest.mark.parametrize(
    ("content", "is_ours"),
    [
        (b"", True),
        (b"made by us\n...", True),
        (b"." * 200_000 + b"made by us", True),
        (b"mine", False),
        (b"made by u", False),
        (b"." * 100_000 + b"made by us" + b"." * 100_000, False),
    ],
)
def test_a_mark_protects_what_others_wrote(tmp_path, content, is_ours):
    path = tmp_path / "file"
    path.write_bytes(content)
    if is_ours:
        with atomic_file(path, mark=b"made by us") as new:
            new.write_text("made by us, again")
        assert path.read_text() == "made by us, again"
        return
    refusal = "it exists and glassformer did not write it"
    with pytest.raises(CheckpointError, match=refusal), atomic_file(path, mark=b"made by us"):
        raise AssertionError("nothing may be written")
    assert path.read_bytes() == content


def saved(folder: Path, config: str, *names: str) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(config)
    for name in names:
        (folder / name).write_text("x")
    return folder


OURS = '{"glassformer": 1, "files": {"model.safetensors": "…"}}'
THEIRS = '{"model_type": "gpt2"}'


@pytest.mark.parametrize(
    ("config", "names", "said"),
    [
        (OURS, ["model.safetensors"], ""),
        (THEIRS, ["model.safetensors", "tokenizer.json", "vocab.json", "merges.txt"], ""),
        (THEIRS, ["model-00001-of-00002.safetensors", "model.safetensors.index.json"], ""),
        (OURS, ["model.safetensors", "thesis.txt"], "also holds thesis.txt"),
        (THEIRS, ["photo.jpg"], "also holds photo.jpg"),
        ('{"port": 80}', [], "holds something else"),
        ("[]", [], "holds something else"),
        ("[" * 99_999, [], "holds something else"),
    ],
)
def test_a_folder_with_other_things_is_not_replaced(tmp_path, config, names, said):
    folder = saved(tmp_path / "model", config, *names)
    if not said:
        with atomic_folder(folder, overwrite=True) as new:
            (new / "new").write_text("x")
        assert [p.name for p in folder.iterdir()] == ["new"]
        return
    with pytest.raises(CheckpointError, match=said), atomic_folder(folder, overwrite=True):
        raise AssertionError("nothing may be written")
    assert {p.name for p in folder.iterdir()} == {"config.json", *names}


def test_a_file_is_no_folder_to_replace(tmp_path):
    (tmp_path / "model").write_text("mine")
    refused = pytest.raises(CheckpointError, match="is not a folder")
    with refused, atomic_folder(tmp_path / "model", overwrite=True):
        raise AssertionError("nothing may be written")
    assert (tmp_path / "model").read_text() == "mine"
