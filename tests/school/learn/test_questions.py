"""The questions: complete in both languages, right where they can be computed."""

import re

import pytest
import torch

from glassformer.errors import ConfigError
from glassformer.languages import CODES
from glassformer.school.learn import chapter_names, read_questions, topics
from glassformer.school.learn.answers import read_answer
from glassformer.school.learn.questions import _read

ALL = [pytest.param(question, id=question.name) for question in read_questions()]
TYPED = [pytest.param(q, id=q.name) for q in read_questions() if q.answer is not None]
HAN = re.compile("[\u4e00-\u9fff]")


def test_there_are_enough():
    assert len(ALL) >= 60 and len(TYPED) >= 15
    assert len({question.name for question in read_questions()}) == len(ALL)
    assert topics() == chapter_names()


@pytest.mark.parametrize("question", ALL)
def test_a_question_is_whole_in_both_languages(question):
    for text in (question.ask, question.short, question.full):
        assert set(text) == set(CODES)
        assert all(each.strip() == each and each for each in text.values())
    assert not HAN.search(question.ask["en"].replace("我 爱 你", "").replace("爱", ""))
    assert HAN.search(question.ask["zh"]) and HAN.search(question.full["zh"])
    assert not re.search(r"[\u4e00-\u9fff][,.;:!?](\s|$)", question.full["zh"])
    assert len(question.full["en"]) > len(question.short["en"]) > 0
    assert question.name.startswith(f"{question.topic}-")
    assert question.proofs


@pytest.mark.parametrize("question", TYPED)
def test_a_typed_answer_is_what_the_code_computes(question):
    torch.manual_seed(0)
    namespace = {}
    exec(compile(question.code, question.name, "exec"), namespace)
    computed = namespace["answer"]
    typed = ", ".join(map(str, computed)) if isinstance(computed, list) else str(computed)
    assert question.answer.accepts(typed) is True
    assert question.answer.accepts(str(question.answer)) is True
    assert question.answer.is_shape == isinstance(computed, list)


@pytest.mark.parametrize("question", ALL)
def test_code_stands_where_an_answer_is_typed(question):
    assert bool(question.code) == (question.answer is not None)
    assert all(len(line) <= 78 for line in question.code.splitlines())


@pytest.mark.parametrize(
    ("answer", "typed", "judged"),
    [
        (8, "8", True),
        (8, " 8.0 ", True),
        (8, "8.1", False),
        (8, "eight", None),
        (8, "", None),
        (1000000, "1,000,000", True),
        (1000000, "1 000 000", True),
        (1000000, "1e6", True),
        (131072, "131,072", True),
        (0.63, "0.63", True),
        (0.63, "0.628", True),
        (0.63, "63%", True),
        (0.63, "0.64", False),
        (0.63, "０.６３", True),
        (0.5, "1/2", True),
        (0.5, "1/0", None),
        (0, "-0", True),
        (0, "nan", None),
        (0, "inf", None),
        (-3, "−3", True),
        ([2, 8, 10, 96], "(2, 8, 10, 96)", True),
        ([2, 8, 10, 96], "[2,8,10,96]", True),
        ([2, 8, 10, 96], "2 × 8 × 10 × 96", True),
        ([2, 8, 10, 96], "2x8x10x96", True),
        ([2, 8, 10, 96], "２，８，１０，９６", True),
        ([2, 8, 10, 96], "torch.Size([2, 8, 10, 96])", None),
        ([2, 8, 10, 96], "2 8 10", False),
        ([2, 8, 10, 96], "8 2 10 96", False),
        ([2, 8, 10, 96], "2 8 ten 96", None),
    ],
)
def test_what_is_typed_is_read_generously(answer, typed, judged):
    assert read_answer(answer).accepts(typed) is judged


@pytest.mark.plain
def test_a_question_without_a_language_is_named():
    lame = {"name": "x", "ask": {"en": "?", "zh": "？"}, "short": {"en": "!"}, "proofs": []}
    with pytest.raises(ConfigError, match=r"short in en and zh; masks.toml has \['en'\] for 'x'"):
        _read(lame, "masks")
