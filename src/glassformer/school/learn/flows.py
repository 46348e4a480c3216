"""The pictures in which shapes flow: every shape is read off a run, none is typed."""

from collections.abc import Callable

import torch
from torch import nn

from glassformer.fromscratch import MultiHeadLinear, SingleHeadLinear
from glassformer.languages import Language
from glassformer.models.shapes import shapes
from glassformer.school.learn.picture import Flow, Picture, Row, Stage


def _single_head(language: Language) -> Picture:
    say, x = language.say, torch.zeros(2, 5, 6)
    attend = SingleHeadLinear(6, 4)
    q = attend.q_proj(x)
    out, weights = attend(x)
    scores = q @ q.transpose(1, 2)
    return Flow(
        (
            _stage("", "x", x, "B L C"),
            _stage(say("learn.flow.project"), "q, k, v", q, "B L D"),
            _stage("q kᵀ / √D", say("learn.picture.scores"), scores, "B L L"),
            _stage("softmax", say("learn.picture.weights"), weights, "B L L"),
            _stage(say("learn.flow.sum"), "out", out, "B L D"),
        )
    )


def _many_heads(language: Language) -> Picture:
    x = torch.zeros(2, 10, 768)
    return _attention_flow(language, MultiHeadLinear(768, 8), x, x, cross=False)


def _cross(language: Language) -> Picture:
    return _attention_flow(
        language, MultiHeadLinear(12, 3), torch.zeros(2, 5, 12), torch.zeros(2, 7, 12), cross=True
    )


def _attention_flow(
    language: Language,
    attend: MultiHeadLinear,
    x: torch.Tensor,
    context: torch.Tensor,
    *,
    cross: bool,
) -> Picture:
    say = language.say
    heads = (attend.n_heads, attend.head_dim)
    q, k = attend.q_proj(x), attend.k_proj(context)
    split_q, split_k = q.unflatten(-1, heads), k.unflatten(-1, heads)
    turned_q, turned_k = split_q.transpose(1, 2), split_k.transpose(1, 2)
    out, weights = attend(x, context)
    mixed = weights @ turned_k
    S = "S" if cross else "L"
    sides = [("q", x, q, split_q, turned_q, "L")]
    if cross:
        sides.append(("k, v", context, k, split_k, turned_k, "S"))
    flows = tuple(
        Flow(
            (
                _stage("", "x" if letter == "L" else "context", given, f"B {letter} C"),
                _stage(say("learn.flow.project"), name, projected, f"B {letter} H·D"),
                _stage(say("learn.flow.split"), name, split, f"B {letter} H D"),
                _stage(say("learn.flow.transpose"), name, turned, f"B H {letter} D"),
            ),
            say("learn.flow.queries" if letter == "L" else "learn.flow.keys")
            if cross
            else say("learn.flow.all"),
        )
        for name, given, projected, split, turned, letter in sides
    )
    scores = turned_q @ turned_k.transpose(-2, -1)
    merged = mixed.transpose(1, 2)
    below = Flow(
        (
            _stage("q kᵀ / √D", say("learn.picture.scores"), scores, f"B H L {S}"),
            _stage("softmax", say("learn.picture.weights"), weights, f"B H L {S}"),
            _stage(say("learn.flow.sum"), say("learn.flow.heads"), mixed, "B H L D"),
            _stage(say("learn.flow.back"), say("learn.flow.heads"), merged, "B L H D"),
            _stage(say("learn.flow.merge"), say("learn.flow.heads"), merged.flatten(2), "B L H·D"),
            _stage("W_O", "out", out, "B L C"),
        ),
        say("learn.flow.attend"),
    )
    return Row((*flows, below))


def _block(language: Language) -> Picture:
    say, x = language.say, torch.zeros(2, 5, 6)
    hidden = nn.Linear(6, 24)(x)

    def flow(title: str, *names: str) -> Flow:
        stages = [_stage("", "x", x, "B L C")]
        for name in names:
            if name == "learn.flow.network":
                stages.append(_stage("W_1, ReLU", "", hidden, "B L F"))
                stages.append(_stage("W_2", "", x, "B L C"))
            else:
                stages.append(_stage(say(name), "", x, "B L C"))
        return Flow(tuple(stages), say(title))

    attend, add, norm = "learn.flow.attention", "learn.flow.add", "learn.flow.norm"
    network = "learn.flow.network"
    return Row(
        (
            flow("learn.flow.post", attend, add, norm, network, add, norm),
            flow("learn.flow.pre", norm, attend, add, norm, network, add),
        )
    )


def _transformer(language: Language) -> Picture:
    """The main places of the paper's base model, from a run of it on no data at all."""
    say = language.say
    trace = shapes("transformer-base", batch=2, length=10, context=14)

    def output_stage(site: str, key: str) -> Stage:
        made = [step for step in trace.steps if step.site == site][-1].outputs[0]
        return Stage(say(key), "", made.numbers, " ".join(made.letters))

    def input_stage(site: str, key: str) -> Stage:
        tokens = next(step for step in trace.steps if step.site == site).inputs[0]
        return Stage("", say(key), tokens.numbers, " ".join(tokens.letters))

    encoder = (
        input_stage("encoder.embedding", "learn.flow.source"),
        output_stage("encoder.embedding", "learn.flow.embed"),
        output_stage("encoder.0.self", "learn.flow.attention"),
        output_stage("encoder.0.feed_forward", "learn.flow.network"),
        output_stage("encoder.5.feed_forward", "learn.flow.five"),
    )
    decoder = (
        input_stage("decoder.embedding", "learn.flow.tokens"),
        output_stage("decoder.embedding", "learn.flow.embed"),
        output_stage("decoder.0.self", "learn.flow.masked"),
        output_stage("decoder.0.cross", "learn.flow.cross"),
        output_stage("decoder.0.feed_forward", "learn.flow.network"),
        output_stage("decoder.5.feed_forward", "learn.flow.five"),
        output_stage("head", "learn.flow.head"),
    )
    return Row(
        (
            Flow(encoder, say("learn.picture.encoder")),
            Flow(decoder, say("learn.picture.decoder")),
        )
    )


def _stage(operation: str, name: str, tensor: torch.Tensor, letters: str) -> Stage:
    return Stage(operation, name, tuple(tensor.shape), letters)


def _on_meta_device(make: Callable[[Language], Picture]) -> Callable[[Language], Picture]:
    """Build a picture on the meta device: shapes need neither memory nor random numbers."""

    def make_on_meta(language: Language) -> Picture:
        with torch.device("meta"):
            return make(language)

    return make_on_meta


FLOWS: dict[str, Callable[[Language], Picture]] = {
    "single-head": _on_meta_device(_single_head),
    "many-heads": _on_meta_device(_many_heads),
    "cross": _on_meta_device(_cross),
    "block": _on_meta_device(_block),
    "transformer": _on_meta_device(_transformer),
}
