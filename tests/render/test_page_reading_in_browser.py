"""What a page says of rows and cells is true of them: of what is read, and of what is written."""

import re

import pytest
import torch

import glassformer as gf
from glassformer.languages import Language
from glassformer.tracing import Run, Site, Trace, TracedText
from render.conftest import settled
from render.page_traces import decoder, row_names

pytestmark = pytest.mark.browser
SOURCE = ["<fr>", "␣The", "␣cat", "</s>"]
WRITTEN = ["<s>", "Le", "␣chat", "."]


def attending(targets: list[int], n_keys: int, *, strength: float = 9.0) -> dict:
    """Operands of one head in which query i attends to key targets[i]."""
    q = torch.zeros(1, 1, len(targets), n_keys)
    for row, target in enumerate(targets):
        q[0, 0, row, target] = strength * n_keys**0.5
    k = torch.eye(n_keys)[None, None]
    return {"q": q, "k": k, "v": torch.randn(1, 1, n_keys, 3)}


def translation() -> Trace:
    """A translator whose second cross-attention is an alignment, and nothing else is telling."""
    causal, even = gf.Causal(), torch.zeros(1, 1, 4, 4)
    sites = [
        Site(name="encoder.0.self", q=even, k=even, v=even, queries="source", keys="source"),
        Site(name="decoder.0.self", q=even, k=even, v=even, mask=causal),
        Site(name="decoder.0.cross", q=even, k=even, v=even, keys="source"),
        Site(name="decoder.1.cross", **attending([1, 2, 3, 3], 4), keys="source"),
    ]
    texts = {
        "tokens": TracedText(torch.arange(4)[None] + 7, [WRITTEN], ["</s>"]),
        "source": TracedText(torch.arange(4)[None] + 9, [SOURCE]),
    }
    model = {"name": "translator", "config": {"family": "encoder_decoder"}}
    return Trace([Run({site.name: site for site in sites}, texts)], model)


def sentence(tab) -> str:
    """What screen readers hear of the chosen cell."""
    spoken = tab.locator("#view-panel [aria-live]").inner_text()
    return re.sub("[\u2068\u2069]", "", spoken)


def test_a_page_opens_on_the_most_telling_cell_and_names_text_and_model(open_page) -> None:
    tab = open_page(translation())
    assert tab.locator("#view-title").inner_text().split() == ["decoder.1.cross", "head", "0"]
    heading = "The cat → Le chat."
    assert tab.locator("h1").inner_text() == heading
    assert tab.locator(".model").inner_text().startswith("glassformer translator · encoder decoder")
    assert tab.title() == f"{heading} · translator · decoder.1.cross head 0 · glassformer"
    expected = "After reading Le, writing ␣chat: 100 % of the attention is on ␣cat"
    assert sentence(tab) == expected
    seen = "".join(tab.locator(".readout").inner_text().split())
    placed = expected.replace("Le", "1Le").replace("␣cat", "2␣cat")  # with the tokens' places
    assert seen == "".join(placed.split())
    tab.select_option("#language", "zh")
    assert sentence(tab) == "读入 Le、写出 ␣chat 时，100 % 的注意力放在 ␣cat 上"


def test_the_file_is_named_before_anything_has_run(tmp_path) -> None:
    path = tmp_path / "page.html"
    translation().page(path)
    head = path.read_text("utf-8").split("<body>")[0]
    assert "<title>The cat → Le chat. · translator · glassformer</title>" in head


def test_rows_are_named_by_what_is_read_and_written_next(open_page) -> None:
    tab = open_page(translation(), fragment="#text=1")
    rows = tab.locator("#view-panel tbody th bdi")
    pairs = [*zip(WRITTEN, [*WRITTEN[1:], "</s>"], strict=True)]
    assert rows.all_inner_texts() == [f"\u2068{a}\u2069 → \u2068{b}\u2069" for a, b in pairs]
    assert tab.locator("#view-panel thead bdi").all_inner_texts() == SOURCE
    axes = tab.locator("#axes")
    assert axes.inner_text() == (
        "Rows: token read → token written next. Columns: token attended to (key)."
    )
    tab.select_option("#language", "zh")
    assert axes.inner_text() == "行：读入的词元 → 接着写出的词元。列：被关注的词元（键）。"
    tab.select_option("#site", "0")  # an encoder writes nothing
    settled(tab)
    assert rows.all_inner_texts() == SOURCE
    assert axes.inner_text() == "行：发出注意力的词元（查询）。列：被关注的词元（键）。"


def test_sentences_for_every_kind_of_site(open_page) -> None:
    tab = open_page(translation(), fragment="#site=encoder.0.self&query=2&key=1&head=0")
    assert sentence(tab) == "␣cat puts 25 % of its attention on ␣The"
    tab.select_option("#site", "1")
    settled(tab)
    assert sentence(tab) == "After reading ␣chat, writing .: 33.3 % of the attention is on Le"
    tab.locator("[role=application]").focus()
    tab.keyboard.press("End")
    assert sentence(tab) == "␣chat cannot attend to .: hidden by the mask"
    tab.keyboard.press("ArrowDown")
    assert sentence(tab) == "After reading ., writing </s>: 25 % of the attention is on ."


def test_a_text_that_the_model_was_given_is_not_called_written(open_page) -> None:
    trace = decoder(3, words=["a", "b", "c"])
    tab = open_page(trace, fragment="#query=1&key=0")
    assert sentence(tab).startswith("After reading b, before c: ")
    assert tab.locator("#axes").inner_text().startswith("Rows: token read → next token.")
    tab.locator("[role=application]").focus()
    tab.keyboard.press("ArrowDown")  # nobody knows what comes after the last token
    assert sentence(tab).startswith("After reading c: ")


def test_a_reader_predicts_nothing(open_page) -> None:
    trace = decoder(3, words=["a", "b", "c"])
    for site in trace:
        site.mask = None
    tab = open_page(trace, language=Language("zh"), fragment="#query=1&key=2&text=1")
    assert tab.locator("#view-panel tbody th bdi").all_inner_texts() == ["a", "b", "c"]
    tab.keyboard.press("t")
    assert re.fullmatch(r"b 把 \S+ % 的注意力放在 c 上", sentence(tab))


def test_the_same_rows_are_named_in_lines_and_statistics(open_page) -> None:
    words = ["a", "b", "c", "d"]
    tab = open_page(decoder(4, words=words), fragment="#view=lines")
    assert tab.locator("ul.query bdi").all_inner_texts() == row_names(words)
    assert tab.locator("ul.key bdi").all_inner_texts() == words
    tab.keyboard.press("3")
    tab.locator("svg[role=slider]").first.focus()
    tab.keyboard.press("Home")
    told = tab.locator("svg[role=slider]").first.get_attribute("aria-valuetext")
    assert told.startswith(row_names(words)[0])


def test_even_attention_and_no_choice_look_different(open_page) -> None:
    trace = decoder(4, layers=1, heads=2)
    site = trace["decoder.0.self"]
    site.q[:, 0] = 0.0  # even
    site.q[:, 1] *= 50
    alone = decoder(1, layers=1, heads=1)["decoder.0.self"]  # its query sees one key
    trace.run.sites["other.0.self"] = Site(
        name="other.0.self", q=alone.q, k=alone.k, v=alone.v, queries="one", keys="one"
    )
    tab = open_page(trace)
    labels = {
        each.get_attribute("data-head"): each.get_attribute("aria-label")
        for each in tab.locator("[data-head]").all()
    }
    assert labels["0 0"] == "layer 0, head 0: sharpness 0.00"
    assert float(labels["0 1"].split()[-1]) > 0.5
    assert labels["1 0"] == "layer 0, head 0: sharpness single key"
    assert tab.locator('[data-head="0 0"] .even').count() == 1
    assert tab.locator('[data-head="0 1"] .even').count() == 0
    assert tab.locator('[data-head="1 0"] .none').inner_text() == "–"
    assert "ring" in tab.locator(".overview .note").first.inner_text()
    assert tab.locator(".legend .hidden").count() == 1  # the swatch of what a mask hides
