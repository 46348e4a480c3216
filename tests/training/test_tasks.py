"""Each task, from files to a model that has learned it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import glassformer as gf
from glassformer.errors import ConfigError
from glassformer.models import Encoder
from glassformer.models.baselines import RecurrentLanguage, RecurrentTranslator
from glassformer.settings import as_plain
from glassformer.training import train
from glassformer.training.data import open_data, prepare_data
from glassformer.training.display import SilentDisplay
from glassformer.training.loss import IGNORED
from glassformer.training.model_building import build_model
from glassformer.training.tasks import TASKS, Objective
from glassformer.training.tasks.packed_pairs import PackedShape, pack_pairs
from training import small_runs


def trained(recipe, folder):
    return train(recipe, out=folder / "run", device="cpu", show=SilentDisplay())


def task_of(recipe, folder):
    prepare_data(recipe, folder)
    return TASKS[recipe.task](recipe, open_data(folder))


def test_translation_learns_to_write_backwards(tmp_path):
    result = trained(small_runs.translation(tmp_path), tmp_path)
    assert result.scores["accuracy"] > 0.95
    model = gf.load(result.model)
    assert gf.translate(model, "a b c d") == "d c b a"
    assert gf.translate(gf.load(tmp_path / "run" / "model"), "h e a") == "a e h"


def test_language_learns_the_alphabet(tmp_path):
    result = trained(small_runs.language(tmp_path), tmp_path)
    assert result.scores["accuracy"] > 0.98
    assert gf.generate(gf.load(result.model), "abc", max_new_tokens=9) == "defghijab"


def test_masked_fills_gaps(tmp_path):
    result = trained(small_runs.masked(tmp_path), tmp_path)
    assert result.scores["accuracy"] > 0.9
    (guesses,) = gf.fill(gf.load(result.model), "abcdefghij" + "ab[MASK]defghij", k=1)
    assert guesses[0].piece == "c"


def test_classification_tells_apart(tmp_path):
    result = trained(small_runs.classification(tmp_path), tmp_path)
    assert result.scores["accuracy"] > 0.95
    model = gf.load(result.model)
    assert isinstance(model, Encoder) and model.config.output.classes == ("less", "more")
    tokens = torch.tensor([model.tokenizer.encode("b a c"), model.tokenizer.encode("b d c")])
    assert model.classify(model(tokens)).argmax(-1).tolist() == [1, 0]


@pytest.mark.parametrize("attention", [False, True])
def test_an_lstm_translates_through_the_same_loop(tmp_path, attention):
    changes = {"family": "lstm", "dim": 48, "n_layers": 1, "attention": attention}
    recipe = small_runs.translation(tmp_path)
    recipe = type(recipe).from_dict({**as_plain(recipe), "model": changes}, ["until.steps=250"])
    result = trained(recipe, tmp_path)
    assert result.scores["accuracy"] > (0.95 if attention else 0.6)
    model = gf.load(result.model)
    assert isinstance(model, RecurrentTranslator) and model.config.attention is attention
    if attention:
        assert gf.translate(model, "a b c d") == "d c b a"
        assert gf.translate(model, "a b c d", beams=1) == "d c b a"


def test_an_lstm_writes_through_the_same_loop(tmp_path):
    recipe = small_runs.language(tmp_path)
    model = {"family": "lstm", "dim": 32, "n_layers": 1}
    result = trained(type(recipe).from_dict({**as_plain(recipe), "model": model}), tmp_path)
    assert result.scores["accuracy"] > 0.95
    loaded = gf.load(result.model)
    assert isinstance(loaded, RecurrentLanguage)
    assert gf.generate(loaded, "abc", max_new_tokens=5) == "defgh"


def test_targets_are_shifted_and_padding_is_none(tmp_path):
    task = task_of(small_runs.translation(tmp_path), tmp_path / "run")
    rows = task.order(0)[0]
    tensors = task.batch(rows).tensors
    lengths = task.data.train.columns["target"].lengths[rows]
    for i, row in enumerate(rows):
        n, (source, target) = lengths[i], task.data.train[int(row)]
        assert tensors["targets"][i, :n].tolist() == target.tolist()
        assert (tensors["targets"][i, n:] == IGNORED).all()
        assert tensors["tokens"][i, 0] == task.start
        assert tensors["tokens"][i, 1:n].tolist() == target[:-1].tolist()
        assert (tensors["tokens"][i, n:] == task.pad).all() or n == tensors["tokens"].shape[1]
        assert tensors["source"][i, : len(source)].tolist() == source.tolist()
    assert task.batch(rows).n_targets == lengths.sum()


def test_padding_changes_no_loss(tmp_path):
    """A sentence scores the same alone and among longer ones."""
    recipe = small_runs.translation(tmp_path)
    task = task_of(recipe, tmp_path / "run")
    objective = Objective(build_model(recipe, task), task).eval()
    rows = task.order(0)[0][:7]
    with torch.no_grad():
        together = objective(task.batch(rows).tensors)
        alone = sum(objective(task.batch(rows[i : i + 1]).tensors) for i in range(len(rows)))
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "learned", "alibi", "relative"])
def test_packing_changes_no_loss_and_no_gradient(tmp_path, positions):
    recipe = small_runs.translation(
        tmp_path, model={"positions": {"kind": positions}}, batches={"packed": True, "round_to": 4}
    )
    task = task_of(recipe, tmp_path / "run")
    objective = Objective(build_model(recipe, task), task, smoothing=0.1).train()
    padded = task.batch(task.order(0)[0][:23])
    packed = task.lay_out(padded)
    assert packed.tensors["source"].shape == (1, int(padded.tensors["source_lengths"].sum()))
    assert packed.tensors["targets"].shape == (1, padded.n_targets)
    assert not (packed.tensors["targets"] == IGNORED).any()
    found = []
    for batch in (padded, packed):
        objective.zero_grad()
        loss = objective(batch.tensors)
        loss.backward()
        found.append([loss.detach(), *(p.grad for p in objective.parameters())])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=1e-4)
    model = objective.model.eval()
    apart = padded.tensors["targets"] != IGNORED
    torch.testing.assert_close(
        task.logits(model, packed.tensors)[0], task.logits(model, padded.tensors)[apart]
    )


@pytest.mark.parametrize("max_tokens", [300, 1000])
@pytest.mark.parametrize("n", [0, -1])
def test_rows_that_are_filled_up_change_nothing(tmp_path, max_tokens, n):
    recipe = small_runs.translation(tmp_path, batches={"packed": True, "max_tokens": max_tokens})
    task = task_of(recipe, tmp_path / "run")
    task.fix_shape()
    objective = Objective(build_model(recipe, task), task, smoothing=0.1).train()
    padded = task.batch(task.order(0)[n])  # a full batch, and the last one
    found = []
    for batch in (pack_pairs(padded), task.lay_out(padded)):
        objective.zero_grad()
        loss = objective(batch.tensors)
        loss.backward()
        found.append([loss.detach(), *(p.grad for p in objective.parameters())])
    assert (batch.tensors["targets"] != IGNORED).sum() == padded.n_targets == batch.n_targets
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=1e-4)


def test_fixed_batches_have_one_shape_little_filling_and_every_pair(tmp_path):
    recipe = small_runs.translation(tmp_path, batches={"packed": True, "max_tokens": 1500})
    task = task_of(recipe, tmp_path / "run")
    task.fix_shape()
    shapes, filled = set(), []
    for epoch in range(3):
        order = task.order(epoch)
        assert sorted(np.concatenate(order)) == list(range(len(task.data.train.lengths)))
        for rows in order:
            batch = task.lay_out(task.batch(rows))
            shapes.add(tuple((name, each.shape) for name, each in batch.tensors.items()))
            filled.append(batch.n_targets / batch.tensors["targets"].numel())
        assert min(filled[:-1]) > 0.8
        filled.clear()
    assert len(shapes) == 1
    assert [rows.tolist() for rows in order] == [rows.tolist() for rows in task.order(2)]


@given(st.lists(st.tuples(*[st.integers(1, 60)] * 2), min_size=1), st.integers(60, 400))
def test_whatever_the_lengths_batches_fit_their_shape(lengths, max_tokens):
    lengths = np.array(lengths)
    room = PackedShape.of(lengths, max_tokens=max_tokens)
    for rows in room.fill(lengths, seed=0, epoch=0):
        n_filling = room.texts - len(rows)
        for side, total in zip((room.source, room.target), lengths[rows].sum(0), strict=True):
            assert n_filling <= side - total <= n_filling * room.longest


def test_packed_pairs_are_learned_too(tmp_path):
    changes = {"batches": {"packed": True}, "model": {"dropout": {"residual": 0.05}}}
    result = trained(small_runs.translation(tmp_path, **changes), tmp_path)
    assert result.scores["accuracy"] > 0.95
    assert gf.translate(gf.load(result.model), "a b c d") == "d c b a"


def test_a_share_without_pairs_is_packed_too(tmp_path):
    """With more processes than pairs, one computes a row whose targets are all ignored."""
    recipe = small_runs.translation(tmp_path, batches={"packed": True})
    task = task_of(recipe, tmp_path / "run")
    share = task.batch(task.order(0)[0][:1]).shard(1, 2)
    tensors = task.lay_out(share).tensors
    assert tensors["targets"].tolist() == [[IGNORED]]
    assert Objective(build_model(recipe, task), task).train()(tensors) == 0.0


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"consistency": 1.0}, "consistency = 1.0"),
        ({"model": {"family": "lstm"}}, "an LSTM"),
        ({"task": "language"}, "task = 'language'"),
    ],
)
def test_what_cannot_be_packed(tmp_path, changes, found):
    with pytest.raises(ConfigError, match=f"batches.packed packs the pairs .* got {found}"):
        small_runs.translation(tmp_path, batches={"packed": True}, **changes)


def test_documents_see_themselves_alone(tmp_path):
    text = tmp_path / "documents.txt"
    text.write_text("\n\n".join(small_runs.words(60)) + "\n")
    recipe = small_runs.language(
        tmp_path,
        data={"train": [{"files": [str(text)], "format": "documents"}]},
        batches={"documents": True, "length": 12, "rows": 3},
    )
    task = task_of(recipe, tmp_path / "run")
    from glassformer.training.model_building import build_model

    model = build_model(recipe, task).eval()
    batch = task.batch(task.order(0)[0])
    tokens, documents = batch.tensors["tokens"], batch.tensors["documents"]
    logits = task.logits(model, batch.tensors)
    for b in range(len(tokens)):
        for document in documents[b].unique():
            inside = documents[b] == document
            alone = model(tokens[b][inside][None])[0]
            torch.testing.assert_close(logits[b][inside], alone, atol=1e-5, rtol=1e-4)
    crossing = documents[:, 1:] != documents[:, :-1]
    assert crossing.any() and (batch.tensors["targets"][:, :-1][crossing] == IGNORED).all()


def test_eighty_ten_ten(tmp_path):
    recipe = small_runs.masked(tmp_path, batches={"length": 200, "rows": 500, "masked": 0.15})
    task = task_of(recipe, tmp_path / "run")
    rng = np.random.default_rng(0)
    tokens = rng.choice(task.ordinary, (500, 200))
    hidden, gaps, targets = task.hide(tokens, rng)
    shown = np.take_along_axis(hidden, gaps, axis=1)
    assert gaps.shape == (500, 30) and (targets == np.take_along_axis(tokens, gaps, 1)).all()
    others = np.ones_like(tokens, dtype=bool)
    np.put_along_axis(others, gaps, False, axis=1)
    assert (hidden[others] == tokens[others]).all()
    assert abs((shown == task.mask).mean() - 0.8) < 0.01
    # one in ten stays, and so does a random token that happens to be the same
    assert abs((shown == targets).mean() - (0.1 + 0.1 / len(task.ordinary))) < 0.01


def test_special_tokens_are_never_hidden(tmp_path):
    task = task_of(small_runs.masked(tmp_path), tmp_path / "run")
    tokens = np.full((4, 10), task.data.special.begin)
    tokens[:, 3] = task.ordinary[0]
    hidden, _, targets = task.hide(tokens, np.random.default_rng(0))
    assert (hidden[:, [0, 1, 2, 4]] == task.data.special.begin).all()
    assert ((targets == IGNORED) | (targets == task.ordinary[0])).all()


def test_a_prefix_names_the_language(tmp_path):
    """Two targets of one source, told apart by a special token in front."""
    some = small_runs.words(300, low=2, high=3)
    files = {}
    for name, change in (("same", lambda w: w), ("back", lambda w: w[::-1])):
        source, target = tmp_path / f"{name}.s", tmp_path / f"{name}.t"
        source.write_text("".join(" ".join(w) + "\n" for w in some))
        target.write_text("".join(" ".join(change(w)) + "\n" for w in some))
        files[name] = [str(source), str(target)]
    train_files = [{"files": files[n], "prefix": f"<{n}> "} for n in files]
    recipe = small_runs.translation(tmp_path, data={"train": train_files}, until={"steps": 250})
    result = trained(recipe, tmp_path)
    model = gf.load(result.model)
    assert gf.translate(model, "<same> a b c") == "a b c"
    assert gf.translate(model, "<back> a b c") == "c b a"


@pytest.mark.plain
def test_a_masked_model_must_have_a_mask(tmp_path):
    recipe = small_runs.masked(tmp_path)
    plain_text = small_runs.language(tmp_path)
    prepare_data(plain_text, tmp_path / "run")
    with pytest.raises(gf.GlassformerError, match="needs a mask token"):
        TASKS["masked"](recipe, open_data(tmp_path / "run"))
