"""Writing: texts and numbers are the library's, whatever is kept, chosen or searched for."""

from typing import Any

import pytest
import torch

import glassformer as gf
from glassformer.errors import ConfigError, TraceError
from glassformer.generation import rank_translations
from glassformer.workbench.desk import handle
from glassformer.workbench.jobs import Cancelled
from glassformer.workbench.wire import JOBS

WRITER = {"model": "writer", "text": "It was a dark"}
TRANSLATOR = {"model": "translator", "text": "Where is the station?", "to": "fr"}
SAMPLED = {"temperature": 0.8, "top_k": 40, "top_p": 0.9, "seed": 3, "max_new_tokens": 12}


def ask(job: str, **asked: Any) -> Any:
    found = handle(job, asked, lambda _: None)
    JOBS[job].answered.model_validate(found)
    return found


@pytest.fixture(scope="module")
def writer() -> Any:
    return gf.load("writer")


@pytest.fixture(scope="module")
def translator() -> Any:
    return gf.load("translator")


def test_a_seed_writes_what_generate_writes(writer: Any) -> None:
    found = ask("write", **WRITER, **SAMPLED)
    assert found["text"] == gf.generate(writer, WRITER["text"], **SAMPLED)
    assert [step["token"] for step in found["steps"]] == found["tokens"]
    greedy = ask("write", **WRITER, max_new_tokens=6)
    assert greedy["text"] == gf.generate(writer, WRITER["text"], max_new_tokens=6)
    assert all(step["chosen"]["after"] == 1.0 and step["rank"] == 0 for step in greedy["steps"])
    assert all(step["entropy_after"] == 0.0 < step["entropy"] for step in greedy["steps"])


def test_probabilities_are_the_softmax_of_the_traces_logits(writer: Any) -> None:
    found = ask("write", **WRITER, **SAMPLED)
    prompt = writer.tokenizer.encode(WRITER["text"])
    with gf.watch(writer, residual=True) as trace, torch.no_grad():
        writer(torch.tensor([[*prompt, *found["tokens"]]]))
    logits = trace.logits()[0, len(prompt) - 1 : -1]
    assert len(logits) == len(found["steps"])
    for row, step in zip(logits, found["steps"], strict=True):
        before = row.softmax(-1)
        best = before.topk(10)
        assert [each["token"] for each in step["top"]] == best.indices.tolist()
        assert [each["before"] for each in step["top"]] == pytest.approx(
            best.values.tolist(), rel=1e-4
        )
        assert step["entropy"] == pytest.approx(float(torch.special.entr(before).sum()), rel=1e-4)
        # After temperature 0.8 and the truncations, as `adjust` defines them.
        sampling = gf.generation.Sampling(temperature=0.8, top_k=40, top_p=0.9)
        after = gf.generation.adjust(row[None], sampling)[0].softmax(-1)
        assert step["chosen"]["after"] > 0
        assert step["chosen"]["after"] == pytest.approx(float(after[step["token"]]), rel=1e-3)


def test_a_text_is_written_on_from_tokens_that_are_kept(writer: Any) -> None:
    first = ask("write", **WRITER, **SAMPLED)
    other = first["steps"][4]["top"][3]["token"]
    kept = [*first["tokens"][:4], other]
    found = ask("write", **WRITER, **SAMPLED, kept=kept)
    assert found["tokens"][:5] == kept and len(found["tokens"]) == 12
    assert [step["is_kept"] for step in found["steps"]] == [True] * 5 + [False] * 7
    prompt = writer.tokenizer.encode(WRITER["text"])
    (expected,) = gf.generation.generate_tokens(
        writer,
        [[*prompt, *kept]],
        max_new_tokens=7,
        sampling=gf.generation.Sampling(temperature=0.8, top_k=40, top_p=0.9),
        stop=writer.special.end,
        never=writer.special.never,
        seed=3,
    )
    assert found["tokens"][5:] == expected
    # The choices of the steps that were kept are those of the first text.
    for before, now in zip(first["steps"][:4], found["steps"][:4], strict=True):
        assert [each["before"] for each in now["top"]] == pytest.approx(
            [each["before"] for each in before["top"]], rel=1e-4
        )
    assert found["steps"][4]["rank"] == 3
    whole = ask("write", **WRITER, **{**SAMPLED, "max_new_tokens": 5}, kept=kept)
    assert whole["tokens"] == kept and whole["ending"] == "length"


def test_beams_write_what_translate_writes_and_show_their_tree(translator: Any) -> None:
    found = ask("write", **TRANSLATOR, beams=4, max_new_tokens=40)
    best = rank_translations(translator, [TRANSLATOR["text"]], to="fr", beams=4)[0][0]
    assert found["text"] == best.text == "Où se trouve la gare ?"
    assert tuple(found["tokens"]) == best.tokens and found["score"] == best.score
    assert found["ending"] == "stop" and found["steps"][-1]["is_end"]
    tree = found["tree"]
    way = [node for node in tree if node["is_best"]]
    assert [node["token"] for node in way] == [step["token"] for step in found["steps"]]
    assert way[-1]["text"] == best.text
    assert way[-1]["fate"] == "finished" and way[-1]["score"] == pytest.approx(best.score)
    # Each node adds the log-probability of its token to that of its parent.
    for node, step in zip(way, found["steps"], strict=True):
        parent = 0.0 if node["parent"] is None else tree[node["parent"]]["log_probability"]
        gain = torch.tensor(node["log_probability"] - parent).exp()
        assert float(gain) == pytest.approx(step["chosen"]["before"], rel=1e-3)
    assert {node["fate"] for node in tree} >= {"extended", "pruned", "finished"}
    for number, node in enumerate(tree):
        below = [each for each in tree if each["parent"] == number]
        is_continued = any(each["fate"] != "pruned" for each in below)
        assert (node["fate"] == "extended") == is_continued
        if node["fate"] == "pruned":
            assert node["log_probability"] <= node["least_kept"]
        assert node["parent"] is None or node["parent"] < number


def test_a_node_that_completes_a_character_shows_it() -> None:
    asked = {**TRANSLATOR, "text": "The cat sat on the mat.", "to": "zh"}
    found = ask("write", **asked, beams=4)
    assert found["text"] == "猫坐在地毯上。"
    pieces = [node["piece"] for node in found["tree"] if node["is_best"]]
    assert "毯" in pieces and "…" not in pieces  # 毯 is two tokens
    assert [step["piece"] for step in found["steps"]].count("…") == 1


def test_looks_are_the_rows_that_predicted_each_token(translator: Any) -> None:
    written = ask("write", **TRANSLATOR, beams=4)["tokens"]
    one = ask("looks", **TRANSLATOR, tokens=written, site="decoder.2.cross", head=1)["looks"]
    source = translator.tokenizer.encode(f"<fr> {TRANSLATOR['text']}")
    start = list(translator.special.start) or [translator.special.begin]
    with gf.watch(translator) as trace, torch.no_grad():
        translator(torch.tensor([source]), torch.tensor([[*start, *written]]))
    weights = trace["decoder.2.cross"].weights(head=1)
    assert [each["of"] for each in one] == ["source"] and one[0]["heads"] == 1
    assert len(one[0]["rows"]) == len(written) + 1  # the end has its row, too
    for row, looked in zip(weights[len(start) - 1 :], one[0]["rows"], strict=True):
        best = row.topk(5)
        assert [each["key"] for each in looked] == best.indices.tolist()
        assert [each["weight"] for each in looked] == pytest.approx(best.values.tolist())
    source_looks, own_looks = ask("looks", **TRANSLATOR, tokens=written)["looks"]
    assert (source_looks["of"], own_looks["of"]) == ("source", "tokens")
    own = torch.cat([site.weights() for site in trace if site.keys == site.queries == "tokens"])
    assert own_looks["heads"] == len(own)
    assert own_looks["rows"][0] == [{"key": 0, "weight": pytest.approx(1.0)}]
    last = own.mean(0)[-1].topk(5)
    assert [each["key"] for each in own_looks["rows"][-1]] == last.indices.tolist()


def test_a_change_changes_what_is_written(writer: Any) -> None:
    change = "skip(decoder.2)"
    found = ask("write", **WRITER, max_new_tokens=8, change=change)
    with gf.change(writer, gf.Skip("decoder.2")):
        expected = gf.generate(writer, WRITER["text"], max_new_tokens=8)
    assert found["text"] == expected != gf.generate(writer, WRITER["text"], max_new_tokens=8)


def test_mistakes_are_one_sentence() -> None:
    with pytest.raises(ConfigError, match="An encoder reads a whole text at once"):
        ask("write", model="reader", text="The king")
    with pytest.raises(ConfigError, match="Tokens are numbers from 0 to 5999; got 6000"):
        ask("write", **WRITER, kept=[6000])
    with pytest.raises(ConfigError, match=r"encoder\.0\.self reads the source before"):
        ask("looks", **TRANSLATOR, tokens=[5], site="encoder.0.self", head=0)
    with pytest.raises(TraceError, match="A site must be one of"):
        ask("looks", **TRANSLATOR, tokens=[5], site="nowhere")


@pytest.mark.parametrize("beams", [1, 3])
def test_whoever_leaves_ends_the_writing(beams: int) -> None:
    calls = 0

    def leave(_: float) -> None:
        nonlocal calls
        calls += 1
        if calls == 9:
            raise Cancelled

    with pytest.raises(Cancelled):
        handle("write", {**WRITER, "max_new_tokens": 200, "beams": beams}, leave)
    assert calls == 9
    assert ask("write", **WRITER, max_new_tokens=2)["text"]  # the model is as it was
