"""Chapters and the map: what is sent is what the course says, and progress is the terminal's."""

import json
from datetime import date

import pytest

from glassformer.cli.app import run_words
from glassformer.errors import ConfigError
from glassformer.languages import CODES, Language
from glassformer.school.lab import NAMES
from glassformer.school.learn import chapter_names, read_chapter
from glassformer.school.learn.blocks import Snippet
from glassformer.school.learn.pictures import draw
from glassformer.school.practice import all_exercises
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.learn.chapters import read_places
from glassformer.workbench.wire.requests import ReadingRequest
from workbench.rooms.learn.asking import ask


@pytest.mark.parametrize("code", CODES)
def test_every_chapter_can_be_sent(code):
    for name in chapter_names():
        found = ask("chapter", name=name, lang=code)
        blocks = read_chapter(name, Language(code)).blocks
        assert len(found["blocks"]) == len(blocks)
        for sent, block in zip(found["blocks"], blocks, strict=True):
            if isinstance(block, Snippet):
                assert "".join(text for _, text in sent["code"]) == block.code
                assert sent["output"] == block.output


def test_a_picture_has_the_numbers_of_the_course():
    blocks = ask("chapter", name="weights")["blocks"]
    steps = next(b["picture"] for b in blocks if b["kind"] == "picture" and b["name"] == "cat")
    row = draw("cat", Language("en")).row
    assert steps["dots"] == row.dots.tolist() and steps["scale"] == row.scale
    assert steps["v"] == row.v.tolist()
    causal = next(
        b["picture"] for b in ask("chapter", name="masks")["blocks"] if b.get("name") == "causal"
    )
    assert causal["shares"] == draw("causal", Language("en")).values.double().tolist()


def test_an_unknown_chapter_is_named():
    with pytest.raises(ConfigError, match="No chapter is called 'nowhere'"):
        ask("chapter", name="nowhere")


def test_what_is_read_here_is_read_in_the_terminal(capsys):
    before = ask("course")
    assert before["next"] == {
        "kind": "chapter",
        "name": "why",
        "title": before["chapters"][0]["title"],
    }
    assert {each["state"] for each in before["chapters"]} == {"open"}
    assert ask("read", name="why") == {"read": date.today().isoformat()}
    assert run_words(["learn", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in listed if each["read"]] == ["why"]
    after = ask("course")
    assert after["chapters"][0]["state"] == "started"
    assert after["next"]["kind"] == "questions" and after["next"]["name"] == "why"


def test_the_map_holds_every_part_once():
    found = ask("course", lang="zh")
    assert [each["name"] for each in found["chapters"]] == chapter_names()
    assert [each["name"] for each in found["exercises"]] == [e.name for e in all_exercises()]
    assert [each["name"] for each in found["experiments"]] == list(NAMES)
    own = [name for chapter in found["chapters"] for name in chapter["exercises"]]
    assert len(own) == len(set(own))


def test_places_lead_to_sites_that_exist():
    memory = Memory()
    places = [place for chapter in read_places().values() for place in chapter]
    assert set(read_places()) <= set(chapter_names()) and len(places) > 10
    for place in places:
        if "site" not in place:
            continue
        asked = ReadingRequest(
            model=place["model"], text=place["sentence"], to=place.get("to"), target=None
        )
        sites = {site.name: site for site in memory.reading(asked, lambda _: None).trace}
        assert place["head"] < sites[place["site"]].n_heads
