"""Atlas: what its jobs answer equals the site that they answer for."""

from base64 import b64decode
from typing import Any

import pytest
import torch
from torch import Tensor

from glassformer.analysis import pyramid
from glassformer.errors import TraceError
from glassformer.tracing import Site
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms import atlas
from glassformer.workbench.wire import JOBS

STORY = " ".join(
    f"On day {day} the old man went down to the sea and looked for his boat." for day in range(40)
)
READING = {"model": "writer", "text": STORY}
HEAD = {**READING, "site": 1, "head": 2}
FUNCTIONS = {
    "open": atlas.open_head,
    "survey": atlas.survey_head,
    "tile": atlas.cut_tile,
    "cell": atlas.read_cell,
    "labels": atlas.list_labels,
    "find": atlas.find_text,
}


@pytest.fixture(scope="module")
def memory() -> Memory:
    return Memory()


@pytest.fixture(scope="module")
def site(memory: Memory) -> Site:
    asked = JOBS["atlas/open"].asked.model_validate(HEAD)
    return list(memory.reading(asked, lambda _: None).trace)[1]  # type: ignore[arg-type]


def ask(memory: Memory, job: str, progress: Any = lambda _: None, **extra: Any) -> Any:
    """The answer of a job, held against its wire model."""
    form = JOBS[f"atlas/{job}"]
    asked = form.asked.model_validate({**HEAD, **extra})
    return form.answered.model_validate(FUNCTIONS[job](asked, memory, progress))


def decode(answer: Any) -> Tensor:
    raw = bytearray(b64decode(answer.values))
    form = {"float32": torch.float32, "bfloat16": torch.bfloat16}[answer.form]
    return torch.frombuffer(raw, dtype=form).view(answer.rows, answer.cols).float()


def test_the_atlas_opens_without_computing(memory: Memory, site: Site) -> None:
    found = ask(memory, "open")
    L, S = site.shape[2:]
    assert (found.queries, found.keys) == (L, S) and L > 512
    assert found.tile == 256 and 256 << found.top_level >= L > 256 << (found.top_level - 1)
    assert found.is_causal and not found.is_cross


def test_finest_tiles_are_the_weights_in_float32(memory: Memory, site: Site) -> None:
    found = ask(memory, "tile", level=0, row=1, col=0)
    values = decode(found)
    weights = site.weights(2, rows=slice(256, 512), cols=slice(0, 256))
    torch.testing.assert_close(values, weights, rtol=1e-5, atol=1e-7)
    peaks = torch.frombuffer(bytearray(b64decode(found.row_tops)), dtype=torch.float32)
    torch.testing.assert_close(peaks, site.weights(2, rows=slice(256, 512)).amax(-1))
    hidden = decode(ask(memory, "tile", level=0, row=0, col=1))
    assert (hidden == -1).all()


def test_pooled_tiles_are_exact_to_bfloat16(memory: Memory, site: Site) -> None:
    found = decode(ask(memory, "tile", level=1, row=0, col=0, pool="mean", has_first=False))
    weights, visible = site.weights(2)[:512, :512], site.allowed(2)[:512, :512].clone()
    visible[:, 0] = False
    blocks = [
        part.unflatten(0, (-1, 2)).unflatten(2, (-1, 2)).sum((1, 3))
        for part in (weights * visible, visible.float())
    ]
    expected = torch.where(blocks[1] > 0, blocks[0] / blocks[1].clamp(min=1), -1.0)
    torch.testing.assert_close(found, expected, rtol=2**-8, atol=1e-9)


def test_a_tile_beyond_the_text_is_empty(memory: Memory) -> None:
    found = ask(memory, "tile", level=0, row=999, col=0)
    assert (found.rows, found.values, found.row_tops) == (0, "", "")


def test_the_survey_goes_on_from_where_it_stopped(
    memory: Memory, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atlas, "_CELLS_AT_ONCE", 100 * site.shape[3])
    work = pyramid._ON_CPU._replace(band=50 * site.shape[3])
    monkeypatch.setattr(pyramid, "_ON_CPU", work)
    monkeypatch.setattr(atlas, "_HEADS", type(atlas._HEADS)())
    parts, heard, start = [], [], 0
    while start < site.shape[2]:
        parts.append(ask(memory, "survey", heard.append, start=start))
        assert parts[-1].start == start < parts[-1].stop
        start = parts[-1].stop
    assert heard and parts[-1].share == 1.0
    assert parts[0].tops == [] and len(parts[-1].tops) == ask(memory, "open").top_level + 1
    assert len(parts) > 3 and parts[0].share < 1
    level = ask(memory, "open").top_level
    whole = ask(memory, "tile", level=level, row=0, col=0)
    assert torch.equal(torch.cat([decode(part.tile) for part in parts]), decode(whole))
    assert ask(memory, "survey").stop == site.shape[2]  # known already


def test_a_survey_stops_when_nobody_waits(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atlas, "_HEADS", type(atlas._HEADS)())

    def leave(_share: float) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        ask(memory, "survey", leave)
    assert next(iter(atlas._HEADS.values())).pyramid.n_surveyed == 0
    assert ask(memory, "survey").share == 1.0


def test_a_cell_has_exact_numbers_and_both_places(memory: Memory, site: Site) -> None:
    query, key = 700, 693
    found = ask(memory, "cell", query=query, key=key)
    row = site.weights(2, rows=[query])[0]
    assert found.weight == pytest.approx(float(row[key]), rel=1e-5)
    assert found.score == pytest.approx(site.arithmetic(2, query, key).score, rel=1e-4)
    assert found.n_visible == query + 1 and found.rank == 1 + int((row > row[key]).sum())
    best = row.topk(5)
    assert [each.key for each in found.strongest] == best.indices.tolist()
    labels = ask(memory, "labels", axis="key", start=key, stop=key + 1).labels
    place = found.key_text
    assert place.labels[key - place.start] == labels[0] and len(place.labels) == 49
    assert ask(memory, "cell", query=query).key == int(row.argmax())
    hidden = ask(memory, "cell", query=3, key=4)
    assert (hidden.weight, hidden.score, hidden.is_visible, hidden.rank) == (0.0, None, False, None)


def test_of_a_block_the_strongest_cell_is_read(memory: Memory, site: Site) -> None:
    for has_first in (True, False):
        found = ask(memory, "cell", query=150, key=0, level=2, has_first=has_first)
        block = site.weights(2, rows=slice(600, 604), cols=slice(0 if has_first else 1, 4))
        assert found.weight == pytest.approx(float(block.max()), rel=1e-5)
        assert (600 <= found.query < 604) and found.key < 4 and (has_first or found.key > 0)


def test_labels_are_sent_by_range(memory: Memory, site: Site) -> None:
    found = ask(memory, "labels", axis="query", start=2, stop=9)
    assert found.start == 2 and len(found.labels) == 7
    assert ask(memory, "labels", axis="query", start=10**6, stop=10**6 + 5).labels == []


def test_a_word_of_several_tokens_is_found_again_and_again(memory: Memory) -> None:
    first = ask(memory, "find", axis="key", sought="LOOKED FOR")
    assert first.n_places == 40
    second = ask(memory, "find", axis="key", sought="LOOKED FOR", start=first.place + 1)
    assert second.place > first.place
    labels = ask(memory, "labels", axis="key", start=second.place, stop=second.place + 4).labels
    assert "".join(labels).lstrip("␣").startswith("looked␣for")
    past_the_last = ask(memory, "find", axis="key", sought="looked for", start=10**6)
    assert past_the_last.place == first.place
    assert ask(memory, "find", axis="key", sought="zebra.*").place is None


@pytest.mark.parametrize(
    ("job", "extra", "said"),
    [
        ("open", {"site": 99}, r"The sites of this run are 0 … \d+; got site=99\."),
        ("open", {"head": 99}, r"has heads 0 … \d+; got head=99\."),
        ("open", {"sequence": 1}, r"has sequences 0 … 0; got sequence=1\."),
        ("tile", {"level": 9, "row": 0, "col": 0}, r"The levels are 0 … 2; got level=9\."),
        ("cell", {"query": 10**6, "key": 0}, r"got query=1,000,000, key=0\."),
        ("labels", {"axis": "key", "start": 0, "stop": 5000}, r"At most 4,096 labels"),
        ("survey", {"start": 10**6}, r"The text has [\d,]+ queries; got start=1,000,000\."),
    ],
)
def test_what_is_not_there_is_named(memory: Memory, job: str, extra: dict, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        ask(memory, job, **extra)


def test_few_heads_are_kept(memory: Memory) -> None:
    for site in range(2):
        for head in range(4):
            ask(memory, "open", site=site, head=head)
    assert len(atlas._HEADS) == atlas._MOST_HEADS
