"""What chapters and questions point to exists, and what does not is shown as plain text."""

import pytest

from glassformer.cli.known_names import exercise_names, experiment_names
from glassformer.languages import CODES, Language
from glassformer.school.learn import Known, unknown_references
from glassformer.school.learn.references import format_reference
from glassformer.school.practice import all_exercises

KNOWN = Known(lab=experiment_names(), practice=exercise_names())


def test_every_reference_leads_to_something_that_exists():
    assert unknown_references(KNOWN) == []


def test_every_experiment_is_part_of_a_chapter():
    named = {line.split(": ")[1] for line in unknown_references(Known())}
    assert {f"lab {name}" for name in KNOWN.lab} <= named
    assert {name.split()[0] for name in named} == {"lab", "practice"}


def test_every_exercise_is_part_of_a_chapter_and_has_its_own_number():
    named = {line for line in unknown_references(Known()) if not line.startswith("question")}
    for code in CODES:
        offered = {line.split()[-1] for line in named if line.startswith(f"{code}/")}
        assert set(KNOWN.practice) <= offered
    numbers = [each.number for each in all_exercises()]
    assert numbers[0] == 1 and numbers == sorted(set(numbers))


def test_a_missing_name_is_listed_with_its_place():
    known = Known(lab=set(KNOWN.lab) - {"scale"}, practice=KNOWN.practice)
    found = unknown_references(known)
    assert "en/scale: lab scale" in found and "zh/scale: lab scale" in found
    assert "question scale-why: lab scale" in found
    assert all(line.endswith("lab scale") for line in found)


def test_names_are_read_off_the_folders():
    assert all(name == name.lower() and "_" not in name for name in experiment_names())
    assert all("-" not in name for name in exercise_names())


def test_how_references_read():
    known, english, chinese = Known(practice=["a", "b"]), Language("en"), Language("zh")
    assert format_reference("practice", ["a"], known, english) == "glassformer practice a"
    assert format_reference("practice", ["c"], known, english) == "c"
    assert format_reference("practice", ["a", "b", "c"], known, english) == (
        "a (glassformer practice a), b, c"
    )
    assert format_reference("practice", ["c", "b"], known, chinese) == "c、b"
    assert format_reference("chapter", ["masks"], known, english) == "glassformer learn masks"


@pytest.mark.parametrize(
    ("kind", "name", "there"),
    [
        ("code", "glassformer.attention_weights", True),
        ("code", "glassformer.layers.Core", True),
        ("code", "glassformer.layers.Corn", False),
        ("code", "glassformer.nothing.Core", False),
        ("code", "nothing", False),
        ("quiz", "why-static", True),
        ("quiz", "why-not", False),
        ("picture", "cat", True),
        ("picture", "dog", False),
        ("chapter", "masks", True),
        ("chapter", "mask", False),
        ("song", "masks", False),
    ],
)
def test_what_is_known(kind, name, there):
    assert Known().has(kind, name) is there
