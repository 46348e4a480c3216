"""What cannot be read is cut out of a text, once and whole; everything else is read."""

import string

import pytest

from glassformer.text.coverage import Coverage
from glassformer.text.unreadable_spans import cut_unreadable

ENGLISH = Coverage(
    characters=frozenset(string.ascii_letters + string.digits + " .,;:!?'\"-$%&+/é"),
    plain={"’": "'", "“": '"', "”": '"', "…": "...", "\u00ad": ""},
    targets={},
)

CASES = [
    ("I saw spiders 🕷️ in the кухня.", "I saw spiders in the.", ["🕷️", "кухня"]),
    ("Happy birthday! 🎂🎂", "Happy birthday!", ["🎂🎂"]),
    ("Привет, my friend!", "my friend!", ["Привет,"]),
    ("Is Łódź far?", "Is far?", ["Łódź"]),
    ("It costs £3.50 now.", "It costs now.", ["£3.50"]),
    ("Write to tom@mail.com now.", "Write to now.", ["tom@mail.com"]),
    ("I like (red) apples.", "I like red apples.", ["(", ")"]),
    ("Press 3️⃣ now.", "Press now.", ["3️⃣"]),
    ("A family 👨‍👩‍👧 came.", "A family came.", ["👨‍👩‍👧"]),
    ("We read 'سلام عليكم' there.", "We read '' there.", ["سلام عليكم"]),
    ("I don’t know…", "I don't know...", []),
    ("Zoë and naïve Zoe\u0308", "Zoe and naive Zoe", []),
    ("soft\u00adware\tand\nmore", "software and more", []),
    ("two  spaces stay", "two  spaces stay", []),
]


@pytest.mark.parametrize(("text", "read", "spans"), CASES)
def test_what_is_read_and_what_is_copied(text: str, read: str, spans: list[str]) -> None:
    found = cut_unreadable(text, ENGLISH)
    assert (found.text, [span.text for span in found.spans]) == (read, spans)


@pytest.mark.parametrize(("text", "read", "spans"), CASES)
def test_what_is_read_is_read_again_as_it_is(text: str, read: str, spans: list[str]) -> None:
    again = cut_unreadable(cut_unreadable(text, ENGLISH).text, ENGLISH)
    assert (again.text, again.spans) == (read, ())


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("🎉 Hello 🎉 there 🎉", ["start", "middle", "end"]),
        ("Hello 🎉!", ["before the last mark"]),
    ],
)
def test_places(text: str, places: list[str]) -> None:
    assert [span.place for span in cut_unreadable(text, ENGLISH).spans] == places


@pytest.mark.parametrize("text", ["👍", "Привет, мир!", "→ ← ↑", "  «»  "])
def test_a_text_without_anything_to_read_is_copied_whole(text: str) -> None:
    found = cut_unreadable(text, ENGLISH)
    assert found.text == "" and [span.text for span in found.spans] == [text]
