"""A class in its folder: what is open when, exercises of its own, and files that do not fit."""

from datetime import date

import pytest

from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.school.classroom.class_folder import FILE, OWN, create_class, read_class
from glassformer.school.classroom.new_exercise import create_exercise
from glassformer.school.plans import read_plan
from glassformer.school.practice.exercise import find_exercise

ENGLISH = Language("en")


def names(exercises):
    return [exercise.name for exercise in exercises]


def test_exercises_open_part_by_part(classroom):
    assert names(classroom.list_open(date(2026, 4, 30))) == []
    assert names(classroom.list_open(date(2026, 5, 1))) == ["centred", "attention"]
    assert names(classroom.list_open(date(2026, 5, 8))) == ["centred", "attention", "causal_mask"]
    assert classroom.find_opening("causal_mask") == date(2026, 5, 8)


def test_a_class_follows_its_plan_in_the_instructors_language(tmp_path):
    options = {"title": "秋季班", "plan": "weeks", "start": date(2026, 5, 1)}
    made = create_class(tmp_path / "class", **options, language=Language("zh"))
    assert made.title == "秋季班" and made.parts[0].title == "第一周：注意力"
    assert [part.opens.day for part in made.parts] == [1, 8, 15, 22]
    planned = [step.name for step in read_plan("weeks").steps if step.kind == "practice"]
    assert names(made.exercises) == planned


def test_an_own_exercise_has_a_file_name_that_no_other_can_have(classroom):
    (own,) = classroom.own
    assert own.file_name == "501_centred.py"
    assert find_exercise("501_centred.py", classroom.exercises) == own
    again = create_exercise(classroom, "shifted")
    assert again.folder.name == "502_shifted" and again.entry == ("shifted",)
    assert names(read_class(classroom.folder).own) == ["centred", "shifted"]  # a draft


@pytest.mark.plain
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 1", "version = 2", "version = 1; got 'glassformer class' and 2.*newer"),
        ('"glassformer class"', '"else"', "got 'else'"),
        ('title = "Autumn"', "title = 3", "title of a class must be a line of text; got 3"),
        ('title = "Autumn"', 'title = "a\\nb"', "must be a line of text"),
        ('title = "Autumn"', f'title = "{"x" * 201}"', "may have 200 characters; got 201"),
        ('"attention"', '"atention"', "'atention', which does not exist. Did you mean attention"),
        ('"attention"', '"centred"', "name each exercise once; centred occurs again"),
        ("2026-05-08", '"soon"', "a day such as 2026-09-07; got 'soon'"),
        ("2026-05-08", "2026-05-08T10:00:00", "a day such as"),
        ('["causal_mask"]', '"causal_mask"', "list of names; got 'causal_mask'"),
        ("opens = 2026-05-08", "closes = 2026-05-08", "may hold .* got closes"),
        ("[[part]]", "[[part", "must be TOML"),
        ('[[part]]\ntitle = "First"', "part = 3\n[x]", "each part must be a table"),
    ],
)
def test_a_class_that_does_not_fit_is_refused(classroom, old, new, message):
    file = classroom.folder / FILE
    text = file.read_text("utf-8").replace(old, new, 1)
    if new.startswith("part"):
        text = text.split("[x]")[0]
    file.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=message):
        read_class(classroom.folder)


@pytest.mark.plain
def test_what_is_no_class_is_refused(tmp_path, classroom):
    with pytest.raises(ConfigError, match=r"class\.toml; .* has none\. Create one"):
        read_class(tmp_path / "nowhere")
    (tmp_path / "odd" / FILE).mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_class(tmp_path / "odd")
    options = {"title": "T", "plan": "weeks", "start": date(2026, 5, 1), "language": ENGLISH}
    with pytest.raises(ConfigError, match=r"has a class\.toml already"):
        create_class(classroom.folder, **options)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="could not be written"):
        create_class(tmp_path / "file" / "class", **options)


@pytest.mark.plain
def test_an_own_exercise_that_does_not_fit_is_refused(classroom):
    folder = classroom.folder / OWN / "501_centred"
    (folder / "checks.py").rename(folder / "tests.py")
    with pytest.raises(ConfigError, match=r"501_centred cannot be read: .*checks\.py"):
        read_class(classroom.folder)
    folder.rename(folder.with_name("1_centred"))
    with pytest.raises(ConfigError, match=r"three digits; got .*1_centred"):
        read_class(classroom.folder)
    folder.with_name("1_centred").rename(folder.with_name("501_attention"))
    (folder.with_name("501_attention") / "tests.py").rename(
        folder.with_name("501_attention") / "checks.py"
    )
    with pytest.raises(ConfigError, match="has that of another: attention"):
        read_class(classroom.folder)


@pytest.mark.plain
@pytest.mark.parametrize("name", ["Upper", "two words", "../up", "class", "1st", ""])
def test_a_name_must_be_that_of_a_function(classroom, name):
    with pytest.raises(ConfigError, match="name of a function"):
        create_exercise(classroom, name)


@pytest.mark.plain
@pytest.mark.parametrize("name", ["centred", "attention"])
def test_a_name_can_be_given_once(classroom, name):
    with pytest.raises(ConfigError, match=f"exercise {name} already"):
        create_exercise(classroom, name)
