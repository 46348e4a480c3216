"""What chapter 18 says without printing it."""

import torch
from torch.nn.functional import normalize

import glassformer as gf
from glassformer.languages import Language
from glassformer.models import PRESETS
from glassformer.models.pretrained import list_pretrained
from glassformer.school.learn.pictures import draw


def test_which_models_have_the_factor():
    scaled = {name: gf.load(name).config.scaled_embedding for name in list_pretrained()}
    assert [name for name in scaled if scaled[name]] == ["translator"]
    llama = PRESETS["llama-3.1-8b"]
    assert llama.positions.kind == "rotary" and not llama.scaled_embedding


def test_rows_of_a_tied_table_are_trained_twice():
    model = gf.load("writer")
    table = model.embedding.weight
    assert model.config.output.tied
    tokens = torch.tensor([[5, 6, 7]])
    (gradient,) = torch.autograd.grad(model(tokens).logsumexp(-1).sum(), table)
    assert bool((gradient.abs().sum(-1) > 0).all())  # every row is a candidate
    read = gradient[[5, 6, 7]].norm(dim=-1).mean()
    assert read > 10 * gradient.norm(dim=-1).median()  # and these three were read, too


def test_the_table_of_eight_billion():
    llama = PRESETS["llama-3.1-8b"]
    table = llama.vocab_size * llama.dim
    assert (llama.vocab_size // 1000, llama.dim) == (128, 4096)
    assert round(table / 1e9, 1) == 0.5
    assert round(100 * table / 8.03e9) == 7  # of its published 8.03 billion parameters


def test_neighbours_of_the_picture():
    album = dict(draw("neighbours", Language("en")).pictures)

    def names(word, place):
        return {bar[0].strip("Ġ #") for bar in album[word].pictures[place].bars}

    colours = {"blue", "green", "white", "black", "yellow", "brown", "scarlet", "crimson", "purple"}
    assert len(names("red", 0) & colours) >= 3
    assert {"tend", "attend", "tenir"} <= names("ten", 2)


def test_random_rows_of_the_writer_are_alike():
    E = normalize(gf.load("writer").embedding.weight.detach(), dim=-1)
    rows = torch.randperm(len(E), generator=torch.Generator().manual_seed(0))[:1000]
    cosines = E[rows] @ E[rows].T
    mean = (cosines.sum() - len(rows)) / (len(rows) * (len(rows) - 1))
    assert 0.15 < mean < 0.25
