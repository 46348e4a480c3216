"""Damaged run folders: the previous checkpoint and a sentence, or a refusal; never a traceback."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import glassformer as gf
from glassformer.errors import CheckpointError, ConfigError, GlassformerError, TrainingError
from glassformer.training import Recipe, train
from glassformer.training.checkpoints import Checkpoints
from glassformer.training.checksums import find_damage
from glassformer.training.display import SilentDisplay
from glassformer.training.parallel import Parallel
from glassformer.training.recipe_files import read_recipe
from training import small_runs

pytestmark = pytest.mark.plain
STEPS = ["until.steps=26"]


class Told(SilentDisplay):
    """A display that remembers."""

    def __init__(self):
        self.said = []

    def announce(self, text):
        self.said.append(text)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> Path:
    """A run that ended at step 20: checkpoints 8 (weights), 16, 20-stop; best/ and model/."""
    folder = tmp_path_factory.mktemp("stopped")
    recipe = small_runs.language(
        folder,
        until={"steps": 20},
        save={"every_steps": 4, "average": 3},
        evaluate={"every_steps": 6},
        show={"every": 3},
    )
    recipe = Recipe.from_toml(_format_line(folder, recipe))
    train(recipe, out=folder / "run", device="cpu", show=SilentDisplay())
    return folder / "run"


def _format_line(folder: Path, recipe: Recipe) -> Path:
    path = folder / "recipe.toml"
    path.write_text(recipe.as_toml())
    return path


@pytest.fixture
def run(stopped, tmp_path) -> Path:
    """A copy of it to damage."""
    return Path(shutil.copytree(stopped, tmp_path / "run"))


@pytest.fixture(scope="module")
def expected(stopped, tmp_path_factory):
    """What the undamaged run ends with."""
    out = Path(shutil.copytree(stopped, tmp_path_factory.mktemp("expected") / "run"))
    assert resumed(out) == []
    return ending(out)


def resumed(out: Path) -> list[str]:
    """Resume by the folder alone; what was said about damage."""
    show = Told()
    train(read_recipe(out, STEPS), out=out, device="cpu", show=show, resume=True)
    return [text for text in show.said if "per epoch" not in text and "loss" not in text]


def ending(out: Path):
    measured = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    kinds = [(line["step"], *sorted(line)) for line in measured]
    assert len(kinds) == len(set(kinds)), "a measurement is there twice"
    assert kinds == sorted(kinds, key=lambda kind: kind[0]), "steps must not go back"
    scores = [line for line in measured if "valid_loss" in line]
    weights = {name: (out / name / "model.safetensors").read_bytes() for name in ("model", "best")}
    return scores, weights, (out / "checkpoints/00000024/optimizer-0.safetensors").read_bytes()


def flip(path: Path, place: float = 0.5) -> None:
    data = bytearray(path.read_bytes())
    data[int(len(data) * place)] ^= 4
    path.write_bytes(data)


def sign(path: Path) -> None:
    """What an attacker does: the hash of a changed file is made to fit."""
    sums = path.parent / "SHA256SUMS"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    lines = [line for line in sums.read_text().splitlines() if not line.endswith(path.name)]
    sums.write_text("".join(f"{line}\n" for line in [*lines, f"{digest}  {path.name}"]))


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def selected(run: Path) -> tuple[str | None, dict[str, str]]:
    """The checkpoint that a run would continue from, and the reasons against newer ones."""
    found = Checkpoints(run / "checkpoints").select(Parallel(torch.device("cpu")))
    reasons = {path.name: why for path, why in found.damaged}
    return None if found.path is None else found.path.name, reasons


FILES = ("model-0.safetensors", "optimizer-0.safetensors", "state.json", "SHA256SUMS")


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_falls_back_to_the_checkpoint_before(run, expected, name):
    flip(run / "checkpoints" / "00000020" / name)
    (said,) = resumed(run)
    assert said.startswith("Checkpoint 00000020 cannot be used: ")
    assert said.endswith("It is kept as 00000020.damaged-1; the run continues from step 16.")
    assert ending(run) == expected
    assert (run / "checkpoints" / "00000020.damaged-1" / name).is_file()


@pytest.mark.parametrize("name", FILES)
def test_any_flipped_bit_is_found(run, name):
    path = run / "checkpoints" / "00000020" / name
    whole = path.read_bytes()
    assert selected(run) == ("00000020", {})
    for i in range(0, len(whole), max(1, len(whole) // 150)):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 1 << i % 8]) + whole[i + 1 :])
        assert selected(run)[0] == "00000016", (i, i % 8)


def test_every_file_of_a_checkpoint_has_a_hash(stopped):
    for folder in (stopped / "checkpoints").iterdir():
        listed = {line[66:] for line in (folder / "SHA256SUMS").read_text().splitlines()}
        assert {p.name for p in folder.iterdir()} <= listed | {"SHA256SUMS"}
        assert listed == {"model-0.safetensors", "optimizer-0.safetensors", "state.json"}
    for folder in (stopped / "tokens", stopped / "tokenizer"):
        assert find_damage(folder) is None


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["delete", "empty", "cut", "folder", "pipe", "link", "deep"])
def test_pieces_that_are_missing_or_something_else(run, name, kind):
    path = run / "checkpoints" / "00000020" / name
    content = path.read_bytes()
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(run / "nowhere")
    elif kind != "delete":
        path.write_bytes({"empty": b"", "cut": content[:-9], "deep": b"[" * 99_999}[kind])
    found, reasons = selected(run)
    assert found == "00000016" and (name in reasons["00000020"] or name == "SHA256SUMS")


def test_a_list_that_lost_a_line(run):
    path = run / "checkpoints" / "00000020" / "SHA256SUMS"
    lines = path.read_text().splitlines(keepends=True)
    for i in range(len(lines)):
        path.write_text("".join([*lines[:i], *lines[i + 1 :]]))
        found, reasons = selected(run)
        assert found == "00000016" and "is not listed in SHA256SUMS" in reasons["00000020"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("step", 19), ("step", "20"), ("step", None), ("epoch", -1), ("index", 1.5)),
        *(("best", "low"), ("best", float("nan")), ("stale", True), ("scaler", [])),
        *(("scaler", {"scale": "x"}), ("regular", [1.5]), ("regular", 3), ("more", 1)),
    ],
)
def test_wrong_values_with_a_hash_that_fits(run, name, value):
    path = run / "checkpoints" / "00000020" / "state.json"
    plain = json.loads(path.read_text())
    plain["training"][name] = value
    path.write_text(json.dumps(plain))
    sign(path)
    found, reasons = selected(run)
    assert found == "00000016" and "state.json" in reasons["00000020"]


def test_a_row_is_not_repeated_to_fill_a_matrix(run):
    path = run / "checkpoints" / "00000020" / "model-0.safetensors"
    tensors = load_file(path)
    name = next(name for name, tensor in tensors.items() if tensor.dim() == 2)
    save_file({**tensors, name: tensors[name][:1].clone()}, path, metadata={"rows": "{}"})
    sign(path)
    with pytest.raises(CheckpointError, match=r"must be of shape \(\d+, 32\); .*holds \(1, 32\)"):
        resumed(run)


def test_without_a_whole_checkpoint_nothing_is_touched(run):
    for path in (run / "checkpoints").iterdir():
        flip(path / "model-0.safetensors")
    before = snapshot(run / "checkpoints")
    with pytest.raises(CheckpointError, match=r"No checkpoint in .* is intact \(00000020: model-0"):
        resumed(run)
    assert snapshot(run / "checkpoints") == before


def test_weights_that_the_mean_needs_are_made_again(tmp_path, run, expected):
    """Of 16 only the weights matter to a run at 20; 12 was kept for the mean alone."""
    flip(run / "checkpoints" / "00000016" / "model-0.safetensors")
    with pytest.raises(CheckpointError, match=r"no model yet: the mean .* needs 00000016, which"):
        train(read_recipe(run, ["until.steps=21"]), out=run, device="cpu", show=Told(), resume=True)
    recipe = read_recipe(run, [*STEPS, "save.average=1"])
    train(recipe, out=run, device="cpu", show=Told(), resume=True)
    assert gf.load(run / "model")


def test_a_mean_goes_back_to_before_the_damage(tmp_path):
    recipe = small_runs.language(
        tmp_path, until={"steps": 14}, save={"every_steps": 4, "average": 2, "keep": 3}
    )
    out, other = tmp_path / "a", tmp_path / "b"
    for each in (out, other):
        train(recipe, out=each, device="cpu", show=SilentDisplay())
    flip(out / "checkpoints" / "00000012" / "model-0.safetensors")
    show = Told()
    train(read_recipe(out), out=out, device="cpu", show=show, resume=True)
    told = "\n".join(show.said)
    assert "00000014-stop cannot be used: the mean that becomes model/ needs 00000012" in told
    assert "the run continues from step 8" in told
    ours, theirs = (gf.load(each / "model").state_dict() for each in (out, other))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("name", ["tokens/train.safetensors", "tokenizer/special.json"])
@pytest.mark.parametrize("kind", ["flip", "delete", "stray", "no list"])
def test_damaged_tokens_are_refused(run, expected, name, kind):
    path = run / name
    undamaged = path.read_bytes()
    sums = path.parent / "SHA256SUMS"
    listed = sums.read_bytes()
    if kind == "flip":
        flip(path)
    elif kind == "stray":
        (path.parent / "tokenizer.old").write_text("mine")
    else:
        (path if kind == "delete" else sums).unlink()
    with pytest.raises(CheckpointError, match=rf"{path.parent.name} is damaged: .*Restore it from"):
        resumed(run)
    (path.parent / "tokenizer.old").unlink(missing_ok=True)
    path.write_bytes(undamaged)
    sums.write_bytes(listed)
    assert resumed(run) == []
    assert ending(run) == expected


def test_a_changed_recipe_is_refused_or_kept(run, stopped):
    path = run / "recipe.toml"
    text = path.read_text()
    path.write_text(text.replace("steps = 20", "steps = 28"))
    with pytest.raises(ConfigError, match=r"has changed since the run wrote it\. Restore it, or"):
        read_recipe(run)
    show = Told()
    recipe = Recipe.from_toml(stopped.parent / "recipe.toml", STEPS)
    train(recipe, out=run, device="cpu", show=show, resume=True)
    assert "recipe.toml has changed since the run wrote it" in show.said[0]
    assert "steps = 28" in (run / "recipe.toml.changed-1").read_text()
    path.unlink()
    with pytest.raises(ConfigError, match=r"recipe\.toml is missing"):
        read_recipe(run)


@pytest.mark.parametrize("content", [None, b"{", b'{"essence": 3}', b"[" * 9999])
def test_a_damaged_essence_follows_from_the_recipe(run, expected, content):
    path = run / "essence.json"
    undamaged = path.read_bytes()
    path.unlink() if content is None else path.write_bytes(content)
    (said,) = resumed(run)
    assert "essence.json" in said and said.endswith("it was rebuilt from recipe.toml.")
    assert path.read_bytes() == undamaged
    assert ending(run) == expected


def test_without_essence_and_recipe_a_run_is_refused(run, stopped):
    recipe = Recipe.from_toml(stopped.parent / "recipe.toml", STEPS)
    flip(run / "essence.json")
    flip(run / "recipe.toml")
    with pytest.raises(CheckpointError, match=r"essence.json is damaged, and recipe.toml is not"):
        train(recipe, out=run, device="cpu", show=Told(), resume=True)


def test_a_damaged_best_makes_way(run, expected):
    flip(run / "best" / "model.safetensors")
    said = resumed(run)[0]
    assert "best/ is damaged: model.safetensors does not match" in said
    assert (run / "best.damaged-1" / "model.safetensors").is_file()
    assert ending(run) == expected


def test_a_missing_best_is_told(run):
    shutil.rmtree(run / "best")
    assert any("best/ is missing" in said for said in resumed(run))


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_in_the_way_of_a_model_stays(run, kind):
    shutil.rmtree(run / "model")
    if kind == "file":
        (run / "model").write_text("mine")
    else:
        (run / "model").mkdir()
        (run / "model" / "mine.txt").write_text("mine")
    before = snapshot(run / "model")
    with pytest.raises(CheckpointError, match=r"model is where the run saves a model, but it is"):
        resumed(run)
    assert (run / "model").exists() and snapshot(run / "model") == before


@pytest.mark.parametrize("line", ["null", '{"step": "x"}', "[" * 9999])
def test_damaged_lines_of_metrics(run, expected, line):
    path = run / "metrics.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], line, *lines[3:]]) + "\n")
    (said,) = resumed(run)
    assert said.startswith("metrics.jsonl is damaged: ") and "up to step 20 were kept" in said
    assert ending(run) == expected


def test_a_changed_number_in_metrics_is_told(run):
    path = run / "metrics.jsonl"
    path.write_text(path.read_text().replace('"loss": 2', '"loss": 3', 1))
    assert any("metrics.jsonl is damaged" in said for said in resumed(run))


def test_half_a_line_of_metrics_needs_no_word(run, expected):
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 21, "epoch": 1}\n{"step": 22, "epo')
    assert resumed(run) == []
    assert ending(run) == expected


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_metrics_that_are_no_file(run, kind):
    path = run / "metrics.jsonl"
    path.unlink()
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    with pytest.raises(CheckpointError, match=r"metrics.jsonl must be a regular file; it is a"):
        resumed(run)
    assert path.exists()


def test_strange_names_are_left_alone(run, expected):
    for name in ("notes.txt", "123", "00000020~", "-stop", "0000002x"):
        (run / "checkpoints" / name).write_text("mine")
    assert resumed(run) == []
    assert ending(run) == expected
    assert (run / "checkpoints" / "notes.txt").read_text() == "mine"


def test_a_file_with_the_name_of_a_checkpoint_is_kept(run, expected):
    (run / "checkpoints" / "00000099").write_text("mine")
    (said,) = resumed(run)
    assert "00000099 cannot be used: it is not a folder" in said
    assert (run / "checkpoints" / "00000099.damaged-1").read_text() == "mine"
    assert ending(run) == expected


def test_checkpoints_that_are_no_folder(run):
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints").write_text("mine")
    with pytest.raises(GlassformerError, match=r"must be a folder of checkpoints: Not a directory"):
        resumed(run)


def test_without_checkpoints_a_run_starts_again(run, expected):
    shutil.rmtree(run / "checkpoints")
    assert "There is no checkpoint yet: the run starts again at step 0." in resumed(run)
    assert ending(run) == expected


def test_resuming_takes_no_foreign_folder(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "recipe.toml").write_text("# my own notes\n")
    recipe = small_runs.language(tmp_path)
    with pytest.raises(ConfigError, match=r"needs a folder of its own; .*mine holds something"):
        train(recipe, out=folder, device="cpu", show=Told(), resume=True)
    assert (folder / "recipe.toml").read_text() == "# my own notes\n"


def test_a_file_that_cannot_be_written_is_named(run, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied", str(run / "checkpoints"))

    monkeypatch.setattr(Path, "rename", refused)
    flip(run / "checkpoints" / "00000020" / "state.json")
    with pytest.raises(
        TrainingError, match=r"checkpoints could not be read or written: Permission"
    ):
        resumed(run)


def test_a_model_that_was_being_replaced_comes_back(run, stopped):
    hidden = run / ".best.old.abcdefgh.unfinished"
    hidden.mkdir()
    (run / "best").rename(hidden / "best")
    assert not any("best" in said for said in resumed(run))
    assert not hidden.exists() and gf.load(run / "best")
