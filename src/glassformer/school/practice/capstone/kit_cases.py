"""The cases of a kit: one part, or the joined model, on what the library's model computed."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from types import GeneratorType

from glassformer.school.practice.capstone.decoder_cases import DECODER_CASES
from glassformer.school.practice.capstone.joining import generate, translate
from glassformer.school.practice.capstone.kit import WHOLE, Kit, read_kit
from glassformer.school.practice.capstone.lending import lend
from glassformer.school.practice.capstone.parts import DECODER, TRANSLATOR
from glassformer.school.practice.capstone.translator_cases import TRANSLATOR_CASES
from glassformer.school.practice.cases import Case

_CASES = {TRANSLATOR: TRANSLATOR_CASES, DECODER: DECODER_CASES}
_RUNS = {TRANSLATOR: translate, DECODER: generate}
# Parts that are handed other parts; all others are graded without any lent code in their process.
_JOINING = ("capstone_translator", "transformer", "capstone_writer")


def load_kit_cases(file: Path) -> GeneratorType:
    """The cases of a kit; everything that is read from files is read now."""
    kit = read_kit(file)
    if kit.part in _JOINING:
        kit = replace(kit, lent=lend(*(name for name in kit.track.parts if name != kit.part)))
    cases = _yield_cases(kit)
    assert isinstance(cases, GeneratorType)
    return cases


def _yield_cases(kit: Kit) -> Generator[Case, None, None]:
    if kit.part == WHOLE:
        run = _RUNS[kit.track.name]
        call = lambda m: run(m, kit)  # noqa: E731
        yield Case(WHOLE, call, names=("tokens",), loose=True, expected=kit["tokens_out"])
        return
    yield from _CASES[kit.track.name][kit.part](kit)
