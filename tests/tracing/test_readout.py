"""Readouts: the model's own scores, to the bit, at any place of the stream."""

import pytest
import torch

from closeness import assert_close
from glassformer.errors import TraceError
from glassformer.tracing import watch
from tracing.test_stream import REFUSED, build
from tracing.watched_architectures import ARCHITECTURES, inputs

WRITERS = [
    name
    for name, each in ARCHITECTURES.items()
    if each.reads == "text"
    and each.model.endswith(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "MTModel"))
    and name not in REFUSED
]
DEEP = {"modernbert-decoder"}  # a dense layer and a nonlinearity before the unembedding


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # theirs
def test_scores_are_the_models(name: str) -> None:
    model = build(name)
    given = inputs(model, "text")
    with torch.no_grad(), watch(model, residual=True) as trace:
        logits = model(**given).logits
    stream = trace.residual()
    readout = stream.readout
    assert torch.equal(readout(stream.end), logits)
    if name in DEEP:
        with pytest.raises(TraceError, match="2 matrices lie between the stream and the scores"):
            readout.require_matrix()
        return
    end = stream.end.double()
    normed = end if readout.norm is None else readout.norm(end)
    scores = readout.factor * normed @ readout.require_matrix().double().mT
    scores = scores if readout.bias is None else scores + readout.bias
    if not readout.is_capped:
        assert_close(scores, logits.double(), 1e-4)
    else:
        assert (scores.argsort(-1) == logits.argsort(-1)).float().mean() > 0.99


def test_generation_reads_the_last_place_and_we_read_all() -> None:
    model = build("llama")
    with watch(model, residual=True) as trace:
        text = model.generate(torch.tensor([[3, 4, 5]]), max_new_tokens=4, do_sample=False)
    stream = trace.residual()
    scores = stream.readout(stream.end)
    assert torch.equal(scores.argmax(-1)[:, 2:], text[:, 3:])


def test_at_least_sixty_architectures_write() -> None:
    assert len(WRITERS) > 60
