"""Versions of files: equal until something that is loaded changes."""

import os

from glassformer.models.checkpoints import save
from glassformer.workbench.file_versions import read_file_versions
from letter_models import letter_model


def test_only_files_that_are_loaded_count(tmp_path):
    folder = tmp_path / "model"
    save(letter_model("decoder"), folder)
    before = read_file_versions(folder)
    assert {name.rpartition("/")[2] for name, *_ in before} >= {"config.json", "model.safetensors"}
    (folder / "notes.md").write_text("mine")
    assert read_file_versions(folder) == before
    at = (folder / "config.json").stat()
    os.utime(folder / "config.json", ns=(at.st_atime_ns, at.st_mtime_ns + 1))
    assert read_file_versions(folder) != before


def test_a_file_of_the_same_size_and_time_is_another(tmp_path):
    first, second = tmp_path / "first.gguf", tmp_path / "second.gguf"
    first.write_bytes(b"weights")
    second.write_bytes(b"heights")
    at = first.stat()
    os.utime(second, ns=(at.st_atime_ns, at.st_mtime_ns))
    before = read_file_versions(first)
    second.replace(first)
    assert read_file_versions(first) != before


def test_a_run_changes_with_the_weights_that_it_loads(tmp_path):
    (tmp_path / "essence.json").write_text("{}")
    assert read_file_versions(tmp_path) == ()
    save(letter_model("decoder"), tmp_path / "best")
    best = read_file_versions(tmp_path)
    save(letter_model("decoder"), tmp_path / "model")
    assert best != read_file_versions(tmp_path) != ()
    assert read_file_versions(tmp_path / "nowhere") == ()
