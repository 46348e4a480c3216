"""The capstone: references run, missing parts are lent, wrong ones are named, hostile ones end."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import glassformer as gf
from glassformer.errors import ConfigError
from glassformer.languages import CODES, Language
from glassformer.models import Config, Decoder
from glassformer.school.practice import find_exercise
from glassformer.school.practice.capstone import assembly
from glassformer.school.practice.capstone.assembly import run_capstone
from glassformer.school.practice.capstone.capstone_texts import (
    as_json,
    describe_mistake,
    describe_outcome,
    in_one_line,
)
from glassformer.school.practice.capstone.library_run import SEED, check_decoder
from glassformer.school.practice.capstone.parts import TRACKS
from glassformer.school.practice.isolation import LAYERS
from glassformer.school.practice.workspace import Workspace
from school.practice.capstone_sets import WRONG_SETS, edit

EN = Language("en")
TEXTS = {"translator": "Where is the station?", "decoder": "The old man"}
MODELS = {"translator": "translator", "decoder": "writer"}
WRITER = Path(gf.__file__).parent / "models" / "pretrained" / "writer"


@pytest.fixture(scope="module")
def models():
    return {path: gf.load(name) for path, name in MODELS.items()}


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """A tiny Llama with grouped queries and another base, as transformers saves it."""
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=6000,
        hidden_size=36,
        intermediate_size=44,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=64,
        rope_parameters={"rope_type": "default", "rope_theta": 100000.0},
        rms_norm_eps=1e-6,
        tie_word_embeddings=True,
        initializer_range=0.3,
        eos_token_id=None,
        bos_token_id=None,
    )
    folder = tmp_path_factory.mktemp("llama")
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    shutil.copy(WRITER / "tokenizer.json", folder)
    return folder


def write_folder(folder, sources):
    workspace = Workspace(folder, EN)
    folder.mkdir(exist_ok=True)
    for name, source in sources.items():
        workspace.file(find_exercise(name)).write_text(source, encoding="utf-8")
    return workspace


def run(models, grader, workspace, path="translator", *, text=None, model=None, to="fr"):
    to = to if path == "translator" else None
    model = model or models[path]
    return run_capstone(model, path, text or TEXTS[path], workspace, grader, to=to)


def solutions(path):
    return {name: find_exercise(name).solution for name in TRACKS[path].parts}


@pytest.mark.parametrize("path", TRACKS)
def test_the_solutions_make_a_model_that_writes_what_the_library_writes(
    models, grader, tmp_path, path
):
    report = run(models, grader, write_folder(tmp_path, solutions(path)), path)
    assert {each.state for each in report.parts} == {"yours"}, report
    assert report.is_equal and report.is_complete
    if path == "translator":
        assert report.joined.text == gf.translate(models[path], TEXTS[path], to="fr", beams=1)
        assert report.joined.text == "Où est la gare ?"
    else:
        settings = {"temperature": 0.8, "top_k": 40, "seed": SEED, "max_new_tokens": 40}
        assert report.joined.text == gf.generate(models[path], TEXTS[path], **settings)
        assert len(report.joined.tokens) == 40


@pytest.mark.parametrize(("to", "text"), [("zh", "I have a small dog."), ("fr", "Stop!")])
def test_other_sentences_are_translated_alike(models, grader, tmp_path, to, text):
    report = run(models, grader, Workspace(tmp_path / "none", EN), text=text, to=to)
    assert report.is_equal and report.joined.text == gf.translate(
        models["translator"], text, to=to, beams=1
    )


def test_a_checkpoint_of_transformers_runs(models, grader, tmp_path, llama):
    model = gf.load(llama)
    workspace = write_folder(tmp_path, solutions("decoder"))
    report = run(models, grader, workspace, "decoder", model=model)
    assert report.is_complete and len(report.joined.tokens) == 40
    assert report.joined.text == gf.generate(
        model, TEXTS["decoder"], temperature=0.8, top_k=40, seed=SEED, max_new_tokens=40
    )


def test_missing_parts_and_untouched_stubs_are_lent(models, grader, tmp_path):
    workspace = write_folder(tmp_path, {"greedy": find_exercise("greedy").solution})
    for name in ("rotary", "embedding"):  # as `practice` creates them, in either language
        code = CODES[0] if name == "rotary" else CODES[1]
        start = Workspace(tmp_path, Language(code)).initial_text(find_exercise(name))
        workspace.file(find_exercise(name)).write_text(start, encoding="utf-8")
    report = run(models, grader, workspace)
    assert report.select("yours") == ["greedy"] and not report.select("wrong")
    assert len(report.select("lent")) == len(report.parts) - 1
    assert report.is_equal and not report.is_complete


@pytest.mark.parametrize("name", WRONG_SETS)
def test_a_wrong_part_is_named(models, grader, tmp_path, request, name):
    wrong_set = WRONG_SETS[name]
    right = {part: find_exercise(part).solution for part in wrong_set.right}
    workspace = write_folder(tmp_path, {**right, **wrong_set.wrong})
    model = gf.load(request.getfixturevalue("llama")) if wrong_set.checkpoint else None
    report = run(models, grader, workspace, wrong_set.path, model=model)
    assert set(report.select("wrong")) == set(wrong_set.wrong)
    assert set(report.select("yours")) == set(wrong_set.right)
    assert report.is_equal  # the wrong parts are lent
    said = json.dumps(as_json(report, workspace, EN)["parts"], ensure_ascii=False)
    assert wrong_set.says in said
    for part in report.parts:
        if part.state == "wrong":
            sentences, where = describe_mistake(part, EN)
            assert sentences and find_exercise(part.part).file_name in where
    told = " ".join(describe_outcome(report, EN))
    if report.with_wrong is not None and report.with_wrong.tokens == report.library.tokens:
        assert "it writes the same text" in told
    elif report.with_wrong is not None:
        assert f"it writes: {in_one_line(report.with_wrong)}" in told


def test_there_are_more_than_ten_wrong_sets():
    assert len(WRONG_SETS) >= 10
    assert len({part for each in WRONG_SETS.values() for part in each.wrong}) >= 10


def test_what_grouped_queries_share_shows_only_where_there_are_groups(models, grader, tmp_path):
    wrong = WRONG_SETS["groups alternate"].wrong
    report = run(models, grader, write_folder(tmp_path, wrong), "decoder")
    assert report.select("yours") == ["grouped_queries"]  # in the writer, every head has its own


HOSTILE = {
    "loop": ("while True:\n        pass", "time", "Still running"),
    "files": ("open('stolen.txt', 'w')", "blocked", "writes to a file"),
    "output": ("print('x' * 2_000_000, flush=True)", "output", "more than 1 MB"),
    "exit": ("import os; os._exit(0)", "exit", "exits the program"),
    "memory": ("import torch; torch.ones(1 << 40)", "memory", "more than 1 GiB"),
    "network": ("import socket; socket.create_connection(('127.0.0.1', 9))", "blocked", "network"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_parts_end_alone(models, grader, tmp_path, monkeypatch, name):
    body, kind, sentence = HOSTILE[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(assembly._SECONDS, "merge_heads", 1.0)
    source = f"def merge_heads(x):\n    {body}\n    return x.transpose(1, 2).flatten(2)\n"
    workspace = write_folder(tmp_path / "mine", {"merge_heads": source})
    report = run(models, grader, workspace)
    [part] = [each for each in report.parts if each.part == "merge_heads"]
    assert (part.state, part.report.kind) == ("wrong", kind)
    assert sentence in " ".join(describe_mistake(part, EN)[0])
    assert report.is_equal and report.with_wrong is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]


LATE = """
calls = 0
def merge_heads(x):
    global calls
    calls += 1
    if calls > 3:
        {late}
    return x.transpose(1, 2).flatten(2)
"""


def test_a_part_that_changes_its_mind_is_noticed_in_the_joined_model(models, grader, tmp_path):
    workspace = write_folder(tmp_path, {"merge_heads": LATE.format(late="x = -x")})
    report = run(models, grader, workspace)
    assert report.select("yours") == ["merge_heads"] and not report.is_equal
    assert "first differs at token 1" in " ".join(describe_outcome(report, EN))


def test_a_joined_model_that_never_ends_is_stopped(models, grader, tmp_path, monkeypatch):
    monkeypatch.setattr(assembly, "_SECONDS_WHOLE", 2.0)
    workspace = write_folder(tmp_path, {"merge_heads": LATE.format(late="while True: pass")})
    report = run(models, grader, workspace)
    assert report.joined is None and not report.is_equal
    assert "did not finish. Still running after 2 seconds" in " ".join(describe_outcome(report, EN))


def test_tokens_that_do_not_exist_are_no_text(models, grader, tmp_path):
    huge = edit("greedy", ("return tokens[:, 1:]", "return tokens[:, 1:] + 9000"))
    report = run(models, grader, write_folder(tmp_path, {"greedy": huge}))
    assert report.select("wrong") == ["greedy"] and report.with_wrong is None


def test_the_process_is_isolated_as_in_practice(models, grader, tmp_path):
    report = run(models, grader, Workspace(tmp_path, EN))
    one = grader.grade_source(find_exercise("attention"), find_exercise("attention").solution)
    assert report.isolation == one.isolation and set(report.isolation) <= set(LAYERS)


@pytest.mark.parametrize("code", CODES)
def test_json_has_the_sentences_of_the_language(models, grader, tmp_path, code):
    language = Language(code)
    workspace = Workspace(tmp_path, language)
    write_folder(tmp_path, WRONG_SETS["the decoder sees the future"].wrong)
    data = as_json(run(models, grader, workspace), workspace, language)
    assert json.loads(json.dumps(data)) == data
    assert data["equal"] is True and data["complete"] is False
    [wrong] = [part for part in data["parts"] if part["state"] == "wrong"]
    assert wrong["part"] == "transformer" and wrong["faults"] and wrong["line"]
    assert ("因果掩码" in wrong["sentences"][0]) == (code == "zh")


@pytest.mark.plain
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norms": {"kind": "layer"}}, "norms.kind='rms'; this model has 'layer'"),
        ({"biases": "all"}, "biases='none'; this model has 'all'"),
        ({"activation": "gelu"}, "activation='silu'; this model has 'gelu'"),
        ({"head_dim": 6}, "head_dim=4; this model has 6"),
    ],
)
def test_other_decoders_are_refused(changes, message):
    plain = gf.load("writer").config.replace(
        vocab_size=11, dim=8, n_heads=2, n_kv_heads=1, head_dim=4, n_layers=1
    )
    plain = {**plain.as_dict()}
    for name, value in changes.items():
        plain[name] = {**plain[name], **value} if isinstance(value, dict) else value
    with pytest.raises(ConfigError, match=message):
        check_decoder(Decoder(Config.from_dict(plain)))


@pytest.mark.plain
def test_the_wrong_kind_of_model_is_refused(models, grader, tmp_path):
    workspace = Workspace(tmp_path, EN)
    with pytest.raises(ConfigError, match="needs a decoder; got EncoderDecoder"):
        run(models, grader, workspace, "decoder", model=models["translator"])
    with pytest.raises(ConfigError, match="need its weights; got Decoder"):
        run(models, grader, workspace, "translator", model=models["decoder"])


@pytest.mark.plain
def test_texts_without_room_are_refused(models, grader, tmp_path):
    workspace = Workspace(tmp_path, EN)
    with pytest.raises(ConfigError, match="leave room in 512 tokens; got"):
        run(models, grader, workspace, "decoder", text="word " * 600)


def test_parts_exist_and_are_ordered_by_number():
    for track in TRACKS.values():
        numbers = [find_exercise(name).number for name in track.parts]
        assert numbers == sorted(numbers)
        assert replace(find_exercise(track.joint)).number == numbers[-1]
