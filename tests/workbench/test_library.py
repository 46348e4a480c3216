"""What can be opened: names for what the command line gives, and nothing else."""

import json
import shutil
from pathlib import Path

import pytest

import glassformer as gf
from glassformer.errors import ConfigError
from glassformer.models.pretrained import list_pretrained
from glassformer.workbench.library import Library
from glassformer.workbench.wire.runs import ModelEntry


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A folder with a model, a training run, a checkpoint, a GGUF file and a trace."""
    folder = tmp_path_factory.mktemp("shelf")
    shutil.copytree(list_pretrained()["writer"], folder / "mine")
    (folder / "run").mkdir()
    (folder / "run/essence.json").write_text("{}")
    foreign = {"model_type": "bert", "architectures": ["BertForMaskedLM"]}
    (folder / "foreign").mkdir()
    (folder / "foreign/config.json").write_text(json.dumps(foreign))
    (folder / "tiny.gguf").write_bytes(b"GGUF")
    model = gf.load("reader")
    with gf.watch(model) as trace:
        gf.embed(model, ["The cat sat."])
    trace.save(folder / "cat.trace")
    (folder / "notes.txt").write_text("nothing to open")
    (folder / "weights.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    (folder / ".hidden").mkdir()
    return folder


def test_the_included_models_say_what_they_are():
    found = {each.name: each.as_entry() for each in Library().sources.values()}
    assert set(found) == set(list_pretrained())
    for name, entry in found.items():
        ModelEntry.model_validate(entry)
        assert entry["family"] == gf.load(name).config.family
    assert found["translator"]["languages"] == list(gf.load("translator").tokenizer.languages)
    assert found["reader"]["languages"] == [] and "[MASK]" in found["reader"]["example"]
    assert Library().default.name == "translator"


def test_a_folder_lists_all_that_it_holds(shelf):
    library = Library([shelf])
    found = {each.name: (each.kind, each.family) for each in library.sources.values()}
    assert found == {
        "cat.trace": ("trace", None),
        "foreign": ("folder", "encoder"),
        "mine": ("folder", "decoder"),
        "run": ("folder", None),
        "tiny.gguf": ("gguf", "decoder"),
        "translator": ("included", "encoder_decoder"),
        "writer": ("included", "decoder"),
        "storyteller": ("included", "decoder"),
        "reader": ("included", "encoder"),
    }
    assert library.find("cat.trace").path == (shelf / "cat.trace").resolve()
    assert library.default.name == "cat.trace" and library.default.example is None


def test_names_are_unique_and_those_of_included_models_are_kept(shelf, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(shelf / "mine", other / "mine")
    shutil.copytree(shelf / "mine", other / "writer")
    found = Library([shelf / "mine", shelf, other, other / "mine"]).sources
    paths = [each.path for each in found.values() if each.kind != "included"]
    assert len(paths) == len(set(paths)) == 7
    assert found["mine"].path == (shelf / "mine").resolve()
    assert found["other/mine"].path == (other / "mine").resolve()
    assert found["other/writer"].path == (other / "writer").resolve()
    assert found["writer"].kind == "included"


def test_a_run_that_saves_its_first_weights_is_described_anew(shelf, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/essence.json").write_text("{}")
    library = Library([tmp_path / "run"])
    assert library.find("run").family is None
    shutil.copytree(shelf / "mine", tmp_path / "run/best")
    library.refresh()
    assert library.find("run").family == "decoder"


@pytest.mark.parametrize(
    "name", ["../mine", "/etc/passwd", "mine/../mine", "", "nothing", "hf://org/name", "<script>"]
)
def test_other_names_open_nothing(shelf, name):
    with pytest.raises(ConfigError, match=r"There is no model or trace .* there are cat\.trace"):
        Library([shelf]).find(name)


def test_paths_that_hold_nothing_are_refused(shelf):
    with pytest.raises(ConfigError, match=r"notes\.txt is no model"):
        Library([shelf / "notes.txt"])
    with pytest.raises(ConfigError, match=r"weights\.safetensors is no model"):
        Library([shelf / "weights.safetensors"])
    with pytest.raises(ConfigError, match=r"missing is not there"):
        Library([Path(shelf / "missing")])
