"""What the chapter on interpretability claims, and no snippet prints."""

import pytest
import torch

import glassformer as gf
from glassformer.languages import Language
from glassformer.school.learn.picture import Album
from glassformer.school.learn.pictures import draw

TEXTS = ("I told the {} that", "When the {} saw the letter,")


@pytest.fixture(scope="module")
def writer():
    return gf.load("writer")


def record(writer, text):
    tokens = torch.tensor([writer.tokenizer.encode(text)])
    with torch.no_grad(), gf.watch(writer, residual=True) as trace:
        writer(tokens)
    return tokens, trace


@pytest.mark.parametrize("text", TEXTS)
def test_at_the_start_the_lens_compares_embeddings(writer, text):
    """Mostly a token is closest to itself; a longer embedding of another may be closer."""
    tokens, trace = record(writer, text.format("king"))
    table = writer.embedding.weight.detach()
    read = (table[tokens[0]] @ (writer.decoder.final_norm.weight * table).T).argmax(-1)
    said = gf.logit_lens(trace).tokens[0, :, 0]
    assert said.tolist() == read.tolist()
    assert (said == tokens[0]).float().mean() > 0.8


@pytest.mark.parametrize("text", TEXTS)
def test_the_stream_more_than_doubles_after_block_1(writer, text):
    for noun in ("king", "queen"):
        stream = record(writer, text.format(noun))[1].residual()
        lengths = [stream.after(f"decoder.{i}.mlp")[0, -1].norm() for i in (1, 4)]
        assert lengths[1] > 2 * lengths[0]


@pytest.mark.parametrize("text", TEXTS)
def test_two_runs_differ_at_the_noun_first_and_never_before_it(writer, text):
    (clean, here), (other, there) = (record(writer, text.format(n)) for n in ("king", "queen"))
    noun = int((clean[0] != other[0]).nonzero())
    for border in here.residual().borders:
        a, b = (trace.residual().after(border)[0] for trace in (here, there))
        apart = (a != b).any(-1)
        assert not apart[:noun].any()
        assert apart[noun]
        if border == "decoder.start":
            assert apart.sum() == 1


def test_a_head_that_looks_and_one_that_carries():
    album = draw("patched-heads", Language("en"))
    assert isinstance(album, Album)
    looks, effects = (matrix.values for matrix in album.pictures[0][1].pictures)
    assert looks[2, 3] > 0.95 and round(float(effects[2, 3]), 2) == 0.01
    assert round(float(looks[2, 0]), 1) == 0.1
    assert 8 < float(effects[2, 0] / effects[2, 3]) < 12
    for _, pair in album.pictures:  # the three heads of the chapter are among the first four
        carried = pair.pictures[1].values.flatten().topk(4).indices.tolist()
        assert {4 * 1 + 1, 4 * 2, 4 * 4 + 3} <= set(carried)
