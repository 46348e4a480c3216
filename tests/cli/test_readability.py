"""What a model cannot read gets a sentence, never an invented translation.

The rule has one threshold, a majority of characters. One of these texts, English with two emoji,
was judged wrongly while bytes were counted, and is why characters are; no number was tuned.
"""

import io
import json
from importlib.resources import files

import pytest

import glassformer as gf
from glassformer.cli.readability import is_readable
from letter_models import letter_model

UNREADABLE = [
    "Все люди рождаются свободными и равными",  # Russian
    "Всі люди народжуються вільними",  # Ukrainian
    "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι",  # Greek
    "يولد جميع الناس أحرارا",  # Arabic
    "כל בני האדם נולדו בני חורין",  # Hebrew
    "सभी मनुष्यों को गौरव और अधिकारों",  # Hindi
    "সমস্ত মানুষ স্বাধীনভাবে",  # Bengali
    "மனிதப் பிறவியினர் சகலரும்",  # Tamil
    "มนุษย์ทั้งปวงเกิดมามีอิสระ",  # Thai
    "모든 인간은 태어날 때부터",  # Korean
    "すべての人間は、生まれながらにして自由",  # Japanese
    "人人生而自由，在尊严和权利上一律平等。",  # Chinese
    "ყველა ადამიანი იბადება",  # Georgian
    "Բոլոր մարդիկ ծնվում են",  # Armenian
    "ሰብዓዊ ፍጡራን ሁሉ",  # Amharic
    "👍",
    "🎉🎂🥳 🎈",
    "❤️",
    "¯\\_(…)_/¯",
    "!!!",
    "🇫🇷🇨🇳",
    "Все хорошо, thanks",
    "「はい」",
    "→ ← ↑",
    "∑∫√∞",
    "ok, но всё остальное написано по-русски",
]
READABLE = [
    "Happy birthday!!! 🎂🎂🎂🎂🎂",
    "Ask for the Straße behind the Kölner Dom.",
    "Is it 寒い or just me?",
    "λ and σ are Greek letters.",
    "www.example.org/path?x=1",
    "All human beings are born free and equal in dignity and rights.",
    "The early bird catches the worm.",
    "Zoë and José met at the café on the Champs-Élysées.",
    "See you at 8!",
    "42",
    "I love it 👍🎉",
    "He said “no” — twice.",
    "Beethoven's 5th costs €12.50.",
    "The word 猫 means cat in Chinese.",
    "naïve coöperation",
    "SHOUTING IS RUDE.",
    "y = mx + b",
    "π is about 3.14159, as everybody knows.",
    "Hi",
    "A",
]


FOREIGN = [
    "Ich habe gestern einen alten Freund getroffen.",
    "Wir müssen morgen früh aufstehen.",
    "¿Dónde está la estación?",
    "Los niños juegan en el parque todos los días.",
    "Oggi il tempo è molto bello.",
    "Eu não sei o que dizer agora.",
    "Ik weet niet wat ik moet zeggen.",
    "Jag vet inte vad jag ska säga.",
    "Pogoda jest dzisiaj bardzo ładna.",
    "Je ne sais pas quoi dire.",
]
NAMES = [
    "Oscar de la Hoya won again.",
    "Charles de Gaulle met Simone de Beauvoir in Los Angeles.",
    "Ludwig Mies van der Rohe designed it.",
    "Le Monde and El País reported it.",
    "Die Hard is a great movie.",
    "As shown by Vaswani et al. 2017",
    "Kubernetes pods crashloop after upgrading containerd.",
    "Que sera, sera",  # too short to tell
]


@pytest.fixture(scope="module")
def translator():
    return gf.load("translator")


@pytest.mark.parametrize("text", UNREADABLE)
def test_another_script_is_unreadable(translator, text):
    assert not is_readable(translator, text)


@pytest.mark.parametrize("text", READABLE)
def test_english_is_readable_with_whatever_it_is_sprinkled(translator, text):
    assert is_readable(translator, text)


@pytest.mark.parametrize("text", FOREIGN)
def test_another_language_is_unreadable(translator, text):
    """By its function words; how often this fails is measured in docs/decisions/0013."""
    assert not is_readable(translator, text)


@pytest.mark.parametrize("text", NAMES)
def test_names_and_technical_words_are_no_other_language(translator, text):
    assert is_readable(translator, text)


def test_our_own_english_raises_no_alarm(translator):
    texts = json.loads(files("glassformer.languages").joinpath("en.json").read_text("utf-8"))
    english = [text for text in texts.values() if any("a" <= c <= "z" for c in text)]
    assert [text for text in english if not is_readable(translator, text)] == []


def test_a_model_of_ones_own_is_judged_by_its_vocabulary():
    """Its language is not known: letters that it has are readable in any script."""
    own = letter_model("encoder_decoder")
    assert is_readable(own, "hello")


@pytest.mark.plain
@pytest.mark.parametrize("command", ["translate", "look"])
@pytest.mark.parametrize("text", ["Привет, мир", "🎉🎉", "Das ist nicht gut."])
def test_one_sentence_instead_of_an_invention(run, command, text):
    code, out, err = run(command, text, "--to", "fr")
    assert (code, out) == (2, "")
    assert f"cannot read this text: {text!r}" in err and err.count("\n") == 1


@pytest.mark.plain
@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_text_is_missing(run, text):
    code, out, err = run("translate", text, "--to", "fr")
    assert (code, out) == (2, "") and "No text given" in err


def test_the_other_lines_are_translated(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("The cat sat.\nПривет\nI am here.\n"))
    code, out, err = run("translate", "--to", "fr")
    lines = out.splitlines()
    assert code == 0 and len(lines) == 3
    assert lines[0] and lines[1] == "" and lines[2]
    assert err.count("\n") == 1 and "'Привет'" in err
