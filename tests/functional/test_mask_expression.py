import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import glassformer as gf
from glassformer.errors import ConfigError
from glassformer.functional.masks.expression import MASKS, read_mask
from glassformer.languages import CODES, Language

EN = Language("en")


@pytest.mark.parametrize(
    ("expression", "mask"),
    [
        ("causal", gf.Causal()),
        ("causal()", gf.Causal()),
        ("  causal & window(3)\n", gf.Causal() & gf.Window(3)),
        ("causal(offset=-1)", gf.Causal(offset=-1)),
        ("window(1, 2)", gf.Window(1, 2)),
        ("window(right=2)", gf.Window(right=2)),
        ("causal | prefix(4)", gf.Causal() | gf.Prefix(4)),
        ("~causal", ~gf.Causal()),
        ("~(causal | window(2)) & prefix(1)", ~(gf.Causal() | gf.Window(2)) & gf.Prefix(1)),
        ("causal | window(2) & prefix(1)", gf.Causal() | gf.Window(2) & gf.Prefix(1)),
        ("documents([0, 0, 1, 1, 1, 2])", gf.Documents(torch.tensor([0, 0, 1, 1, 1, 2]))),
        ("padding([3, 5]) & causal", gf.Padding(torch.tensor([3, 5])) & gf.Causal()),
        ("prefix([1, 2])", gf.Prefix(torch.tensor([1, 2]))),
        ("Padding([3, 5], side='left') | Causal()", gf.Padding([3, 5], side="left") | gf.Causal()),
    ],
)
def test_it_reads_what_is_meant(expression, mask):
    found = read_mask(expression, EN)
    assert repr(found) == repr(mask)
    batch = mask.data_extent().B
    assert torch.equal(found.dense(6, 6, batch=batch), mask.dense(6, 6, batch=batch))


@pytest.mark.parametrize("example", [mask.example for mask in MASKS.values()])
def test_every_example_in_the_sentences_can_be_read(example):
    assert isinstance(read_mask(example, EN), gf.Mask)


WRONG = [
    ("", "combines causal, window(3), prefix(4), padding([3, 5]), documents([0, 0, 1, 1]) with &"),
    ("causal &", "with & | ~ and parentheses; got 'causal &'"),
    ("causal; causal", "got 'causal; causal'"),
    ("x = causal", "got 'x = causal'"),
    ("cauzal", "A mask is one of causal, window(3)"),
    ("cauzal & causal", "got 'cauzal'"),
    ("eval(1)", "got 'eval'"),
    ("causal and window(3)", "combined with & (and), | (or) and ~ (not) only; got 'causal and"),
    ("not causal", "got 'not causal'"),
    ("causal ^ window(3)", "got 'causal ^ window(3)'"),
    ("causal < window(3)", "got 'causal < window(3)'"),
    ("-causal", "got '-causal'"),
    ("3", "may contain only causal, window(3)"),
    ("'causal'", "got \"'causal'\""),
    ("causal.offset", "got 'causal.offset'"),
    ("__import__('os').system('true')", "got \"__import__('os').system('true')\""),
    ("window(3)(4)", "got 'window(3)(4)'"),
    ("[causal for x in y]", "got '[causal for x in y]'"),
    ("lambda: causal", "got 'lambda: causal'"),
    ("window", "window needs a number or a list in parentheses, such as window(3)"),
    ("padding()", "padding needs a number or a list in parentheses, such as padding([3, 5])"),
    ("window(2.5)", "window(left=…) takes a whole number; got '2.5'"),
    ("window(True)", "got 'True'"),
    ("window(None)", "got 'None'"),
    ("window([3])", "window(left=…) takes a whole number; got '[3]'"),
    ("window(1 + 1)", "got '1 + 1'"),
    ("window(left=causal)", "got 'causal'"),
    ("window(*[1])", "got '*[1]'"),
    ("window(99999999999)", "got '99999999999'"),
    ("window(-99999999999)", "got '-99999999999'"),
    ("padding(3)", "padding(lengths=…) takes a list of whole numbers such as [3, 5]; got '3'"),
    ("padding([])", "got '[]'"),
    ("padding([1, 2.0])", "got '[1, 2.0]'"),
    ("padding([[1]])", "got '[[1]]'"),
    ("padding((1, 2))", "got '(1, 2)'"),
    ("prefix('3')", "prefix(length=…) takes a whole number, or a list of them"),
    ("window(1, 2, 3, 4)", "window takes left, right, offset, each at most once; got 'window(1, 2"),
    ("window(1, left=2)", "each at most once; got 'window(1, left=2)'"),
    ("window(width=2)", "got 'window(width=2)'"),
    ("window(**{})", "got 'window(**{})'"),
    ("padding([3], to='both')", "padding takes lengths"),
    ("padding([3], of=both)", "padding(of=…) takes a word in quotes; got 'both'"),
    ("causal" + " & causal" * 201, "at most 200 operators; got 201"),
    ("~" * 50_000 + "causal", "~~~…'"),
    ("(" * 300 + "causal" + ")" * 300, "(((…'"),
    ("causal\0", "got 'causal\\x00'"),
    ("'\\d'", "A mask expression may contain only"),
]


@pytest.mark.parametrize(("expression", "sentence"), WRONG)
def test_anything_else_is_refused_by_name(expression, sentence):
    with pytest.raises(ConfigError) as refused:
        read_mask(expression, EN)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(("expression", "sentence"), WRONG)
def test_in_chinese_too(expression, sentence):
    with pytest.raises(ConfigError, match=r"[\u4e00-\u9fff].*。$"):
        read_mask(expression, Language("zh"))


def test_what_the_mask_itself_refuses_comes_through():
    with pytest.raises(ConfigError, match="must be at least 0; got -1"):
        read_mask("window(-1)", EN)


@given(st.text(alphabet="causlwindow(3,[]) &|~=._'\"-\n", max_size=40), st.sampled_from(CODES))
def test_no_text_does_anything_but_give_a_mask_or_a_sentence(expression, code):
    try:
        assert isinstance(read_mask(expression, Language(code)), gf.Mask)
    except ConfigError as error:
        assert str(error)
