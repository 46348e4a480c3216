"""Tokens are copied when a model is given them: later changes, and a GPU's work, do not matter."""

import pytest
import torch
import transformers

import glassformer as gf
from glassformer.tracing.host_copies import HostCopies
from letter_models import letter_model
from tiny_models import tiny


def test_a_buffer_that_is_filled_again_keeps_its_tokens() -> None:
    model, cache = tiny("llama"), transformers.DynamicCache()
    given, buffer = [5, 9, 7, 3], torch.zeros(1, 1, dtype=torch.long)
    with gf.watch(model) as trace, torch.no_grad():
        for token in given:
            buffer.fill_(token)
            model(buffer, past_key_values=cache)
    assert trace.labels() == [str(token) for token in given]


def test_a_source_that_is_overwritten_keeps_its_tokens() -> None:
    model = letter_model("encoder_decoder")
    source, target = torch.tensor([[4, 5, 6]]), torch.tensor([[7, 8]])
    with gf.watch(model) as expected, torch.no_grad():
        model(source, target)
    with gf.watch(model) as trace, torch.no_grad():
        model(source, target)
        source.fill_(1)
        target.fill_(1)
    for text in ("source", "tokens"):
        assert trace.labels(text) == expected.labels(text)


@pytest.mark.gpu
def test_watching_does_not_wait_for_the_gpu() -> None:
    model = tiny("llama").to("cuda")
    tokens = torch.randint(3, 37, (2, 300), device="cuda")
    expected = tokens.cpu()
    for _ in range(2):  # the first time memory is reserved and kernels are loaded
        with gf.watch(model) as trace, torch.no_grad():
            model(tokens)
            torch.cuda._sleep(2_000_000_000)  # cycles, about a second
            end = torch.cuda.current_stream().record_event()
        is_ahead = not end.query()
        assert torch.equal(trace.run.texts["tokens"].tokens, expected)
        tokens.fill_(1)
        expected = tokens.cpu()
    assert is_ahead


@pytest.mark.gpu
def test_copies_of_two_streams_are_both_waited_for() -> None:
    copies, given = HostCopies(), torch.arange(1000, device="cuda")
    torch.cuda.synchronize()
    copied = []
    for stream in (torch.cuda.Stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(100_000_000)
            copied += [copies.begin(given + i) for i in range(2)]
    copies.wait()
    for i, found in enumerate(copied):
        assert torch.equal(found, torch.arange(1000) + i % 2)
