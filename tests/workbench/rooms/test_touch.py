"""Touch: what its jobs answer equals a rerun of the library, for each kind of intervention."""

from typing import Any

import pytest
import torch

import glassformer as gf
from glassformer.analysis.effects import measure_effect
from glassformer.errors import GlassformerError
from glassformer.tracing import Trace
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms import touch
from glassformer.workbench.wire import JOBS
from glassformer.workbench.wire.requests import ReadingRequest

CAT = {"model": "translator", "text": "The cat sat on the mat.", "to": "fr"}
DOG = "The dog sat on the mat."
WRITER = {"model": "writer", "text": "Mrs. Weston smiled, and"}
CELL = {"site": "decoder.2.cross", "head": 1, "query": 1, "key": 2}


@pytest.fixture(scope="module")
def memory() -> Memory:
    return Memory()


def read(memory: Memory, **reading: Any) -> Trace:
    return memory.reading(ReadingRequest(**reading), lambda _: None).trace


def compare(memory: Memory, progress: Any = lambda _: None, **asked: Any) -> Any:
    form = JOBS["change"]
    found = touch.compare_runs(form.asked.model_validate(asked), memory, progress)
    return form.answered.model_validate(found)


def rewrite(memory: Memory, **asked: Any) -> tuple[str | None, str | None]:
    form = JOBS["rewrite"]
    found = touch.rewrite_text(form.asked.model_validate(asked), memory, lambda _: None)
    answer: Any = form.answered.model_validate(found)
    return answer.before, answer.after


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ablate(decoder.2.cross, head=1)", gf.Ablate("decoder.2.cross", head=1)),
        ("swap(decoder.2.cross, scale=0.02)", gf.Swap("decoder.2.cross", scale=0.02)),
        ("knockout(decoder.2.cross, queries=1, keys=2)", gf.Knockout("decoder.2.cross", 1, 2)),
        ("skip(encoder.3) & ablate(decoder.1.mlp)", None),
    ],
)
def test_both_runs_are_those_of_the_library(memory: Memory, text: str, value: Any) -> None:
    found = compare(memory, **CAT, **CELL, change=text)
    before = read(memory, **CAT)
    after = gf.rerun(before, value or gf.Skip("encoder.3") & gf.Ablate("decoder.1.mlp"))
    for ours, trace in ((found.head.before, before), (found.head.after, after)):
        expected = trace["decoder.2.cross"].weights(1)
        torch.testing.assert_close(torch.tensor(ours), expected, rtol=1e-5, atol=1e-6)
    effect = measure_effect(before, after, position=None, top=10)
    assert found.position == effect.position and len(found.tokens) == len(effect.tokens) >= 10
    for shift, expected in zip(found.tokens, effect.tokens, strict=True):
        assert (shift.token, shift.before, shift.after) == pytest.approx(tuple(expected))
    assert found.divergence == pytest.approx(effect.divergence.tolist())
    assert found.change == text and max(found.divergence) > 0
    assert found.moved[0].distance == pytest.approx(effect.most_changed_head()[2])


def test_the_strongest_keys_of_the_query_are_those_of_both_runs(memory: Memory) -> None:
    found = compare(memory, **CAT, **CELL, change="knockout(decoder.2.cross, queries=1, keys=2)")
    shift = next(each for each in found.head.strongest if each.key == 2)
    assert shift.label == found.head.keys[2] and shift.before > 0.5 and shift.after == 0
    assert sum(each.after for each in found.head.strongest) == pytest.approx(1, abs=0.01)


def test_without_interventions_nothing_differs(memory: Memory) -> None:
    found = compare(memory, **CAT, **CELL)
    assert found.head.before == found.head.after and set(found.divergence) == {0.0}


def test_a_cell_beyond_the_unchanged_text_is_its_last(memory: Memory) -> None:
    found = compare(memory, **CAT, **{**CELL, "query": 99})
    assert found.query == 12 and len(found.head.rows) == 13
    assert (found.site.scale, found.site.is_cross) == (0.125, True)
    found = compare(memory, **CAT, **{**CELL, "site": "decoder.1.self"})
    assert (found.site.mask, found.site.positions) == ("Causal()", "rotary")


def test_the_second_sentence_is_patched_and_steered_towards(memory: Memory) -> None:
    patch = "patch(encoder.2.mlp, trace=$second, what=state)"
    before, after = rewrite(memory, **CAT, change=patch, second=DOG)
    assert "chat" in before and "chien" in after
    first, second = (read(memory, **{**CAT, "text": text}) for text in (CAT["text"], DOG))
    vector = torch.sub(
        *(t.residual("encoder").after("encoder.2.mlp")[0].mean(0) for t in (second, first))
    )
    after_library = gf.rerun(first, gf.Steer("encoder.2.mlp", vector, factor=4.0))
    steer = "steer(encoder.2.mlp, vector=$direction, factor=4)"
    found = compare(memory, **CAT, **CELL, change=steer, second=DOG)
    expected = after_library["decoder.2.cross"].weights(1)
    torch.testing.assert_close(torch.tensor(found.head.after), expected, rtol=1e-5, atol=1e-7)
    assert "chien" in rewrite(memory, **CAT, change=steer, second=DOG)[1]


def test_means_of_this_run_and_alibi_are_expressible(memory: Memory) -> None:
    mean = "ablate(decoder.2.cross, head=1, how=mean, of=$this)"
    before = read(memory, **CAT)
    after = gf.rerun(before, gf.Ablate("decoder.2.cross", head=1, how="mean", of=before))
    effect = measure_effect(before, after, position=None, top=10)
    assert compare(memory, **CAT, **CELL, change=mean).divergence == pytest.approx(
        effect.divergence.tolist()
    )
    assert rewrite(memory, **CAT, change=mean)[1]
    other = {**CELL, "site": "decoder.1.self"}
    alibi = "swap(decoder.1.self, bias=$alibi, positions=none)"
    found = compare(memory, **CAT, **other, change=alibi)
    after = gf.rerun(before, gf.Swap("decoder.1.self", bias=gf.ALiBi.of_heads(4), positions="none"))
    expected = after["decoder.1.self"].weights(1)
    torch.testing.assert_close(torch.tensor(found.head.after), expected, rtol=1e-5, atol=1e-7)


def test_a_writer_continues_the_text_in_both_runs(memory: Memory) -> None:
    before, after = rewrite(memory, **WRITER, change="skip(decoder.1)")
    model = memory.model("writer")
    assert before == gf.generate(model, WRITER["text"], max_new_tokens=16)
    with gf.change(model, gf.Skip("decoder.1")):
        assert after == gf.generate(model, WRITER["text"], max_new_tokens=16)
    assert before != after


def test_a_reader_writes_nothing_and_its_gap_is_compared(memory: Memory) -> None:
    reader = {"model": "reader", "text": "The king sat upon his [MASK]."}
    change = {"change": "ablate(encoder.4.self)"}
    assert rewrite(memory, **reader, **change) == (None, None)
    found = compare(memory, **reader, **change, site="encoder.4.self", head=0, query=1)
    assert found.positions[found.position] == "[MASK]"


def test_a_long_text_is_sent_around_the_cell(memory: Memory) -> None:
    text = "And he said unto them, " * 20
    asked = {"model": "writer", "text": text, "site": "decoder.2.self", "head": 0}
    found = compare(memory, **asked, query=90, key=80, change="ablate(decoder.0.mlp)").head
    site = read(memory, model="writer", text=text)["decoder.2.self"]
    assert len(found.rows) == len(found.keys) == 48
    rows = slice(found.first_row, found.first_row + 48)
    keys = slice(found.first_key, found.first_key + 48)
    assert rows.start <= 90 < rows.stop and keys.start <= 80 < keys.stop
    expected = site.weights(0, rows=rows, cols=keys)
    torch.testing.assert_close(torch.tensor(found.before), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"change": "explode(decoder.2.cross)"}, "one of ablate, freeze"),
        ({"change": "ablate(decoder.9.self)"}, "decoder.9.self"),
        ({"change": "patch(decoder.2.cross, trace=$second)"}, "need a second sentence"),
        ({"change": "patch(decoder.2.cross, trace=$third)"}, r"\$this, \$second"),
        ({"head": 9}, "heads 0, 1, 2, 3; got head=9"),
    ],
)
def test_mistakes_are_sentences(memory: Memory, asked: dict[str, Any], sentence: str) -> None:
    with pytest.raises(GlassformerError, match=sentence):
        compare(memory, **{**CAT, **CELL, **asked})


def test_a_rerun_stops_when_nobody_waits(memory: Memory) -> None:
    read(memory, **CAT)

    def leave(_share: float) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        compare(memory, leave, **CAT, **CELL, change="scale(encoder.0.self, factor=0.25)")
