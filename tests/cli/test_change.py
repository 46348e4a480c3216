"""`glassformer change`: a text with an intervention and without it."""

import json

import pytest

import glassformer as gf


def test_a_continuation_under_an_intervention(run):
    words = ("The king of the north went down into the", "--change", "ablate(decoder.3.self)")
    code, out, err = run("change", *words, "--tokens", "4", COLUMNS=100)
    assert code == 0 and "Traceback" not in err
    before, after = out.splitlines()[:2]
    assert before.startswith("before  The king of the north went down into the ")
    assert after.startswith("after   The king of the north went down into the ")
    assert "Probabilities at ␣the" in out and "KL(before ‖ after)" in out
    assert "100.0 %  decoder.3.self" in out and "how far each weight moved" in out
    assert "The model was changed: ablate(decoder.3.self)" in out


def test_a_translation_in_chinese_and_its_trace(run, tmp_path):
    cut = " & ".join(f"knockout(decoder.{i}.cross, keys=2)" for i in range(4))
    file = tmp_path / "cut.trace"
    words = ("The cat sat on the mat.", "--to", "fr", "--change", cut, "--trace", str(file))
    code, out, _ = run("change", *words, "--lang", "zh")
    assert code == 0 and "Le chat s'assit sur le tapis." in out and "取代 ␣chat" in out
    saved = gf.Trace.load(file)
    assert "knockout" in saved.model["changes"]
    assert float(saved["decoder.1.cross"].weights(head=0)[:, 2].max()) == 0


def test_a_gap_in_json(run):
    words = ("He is taller [MASK] me today.", "--model", "reader", "--change", "skip(encoder.2)")
    code, out, _ = run("change", *words, "--json")
    found = json.loads(out)
    assert code == 0 and found["tokens"][0]["token"] == "than" and found["position"] == 4
    assert found["tokens"][0]["before"] > found["tokens"][0]["after"]
    assert found["written"] == [None, None] and len(found["divergence"]) == 9


def test_a_change_that_does_nothing_says_so(run):
    code, out, _ = run("change", "And God said", "--change", "scale(decoder.1.mlp, factor=1)")
    assert code == 0 and "changed no prediction" in out and "stayed the same" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "An intervention is required"),
        (("--change", "ablate(decoder.9.self)"), "decoder.0 … decoder.4"),
        (("--change", "skip(decoder.1)", "--tokens", "-1"), "--tokens must be at least 0"),
        (("--change", "skip(decoder.1)", "--position", "9"), "There are 3 positions"),
        (("--change", "skip(decoder.1)", "--trace", "/no/where/a.trace"), "does not exist"),
    ],
)
def test_bad_input_is_one_sentence(run, words, said):
    code, out, err = run("change", "And God said", *words)
    assert code == 2 and not out and said in err and len(err.strip().splitlines()) == 1
