"""`glassformer sweep`: a grid of effects, the largest of them, and a sentence."""

import csv
import json
import re

TEXTS = "The king of the north went down into the", "The king of the south went down into the"
TOKENS = "--tokens", " north", " south"
HAN = re.compile("[\u4e00-\u9fff]")


def test_heads_beside_their_roles(run, tmp_path):
    table = tmp_path / "effects.csv"
    code, out, err = run("sweep", *TEXTS, *TOKENS, "--method", "both", "--csv", table)
    assert code == 0 and "Traceback" not in err
    lines = out.splitlines()
    assert lines[0].startswith("logit '␣north' − '␣south' is 1.189 on the clean text")
    grid = [line for line in lines if re.match(r"decoder\.\d\.self ", line)]
    assert len(grid) == 5 and re.search(r"\+43  · · · ·$", grid[0]) and "i" in grid[1][-8:]
    assert re.search(r"decoder\.0\.self\.3 +\+43\.\d % +\+43\.\d % +positional", out)
    words = " ".join(lines)
    assert "The largest effect is at decoder.0.self.3" in words and "rank correlation" in words
    rows = list(csv.DictReader(table.read_text("utf-8").splitlines()))
    assert len(rows) == 20 and {"row", "column", "value", "effect", "estimate"} == set(rows[0])


def test_positions_and_edges_in_chinese(run):
    code, out, _ = run("sweep", *TEXTS, *TOKENS, "--over", "borders-positions", "--lang", "zh")
    assert code == 0 and HAN.search(out) and "8 ␣the" in out and "decoder.2.self 起" in out
    words = ("--over", "edges", "--sender", "decoder.start", "--sender", "decoder.0.self.3")
    code, out, _ = run("sweep", *TEXTS, *TOKENS, *words, "--receiver", "decoder.0.mlp")
    assert code == 0 and re.search(r"decoder\.0\.self\.3 → decoder\.0\.mlp +\+41\.\d %", out)


def test_json_and_a_file_to_resume(run, tmp_path):
    words = ("sweep", *TEXTS, *TOKENS, "--over", "parts", "--resume", tmp_path / "s.json", "--json")
    code, out, _ = run(*words, "--html", tmp_path / "s.html")
    assert "Effect of patching each part" in (tmp_path / "s.html").read_text("utf-8")
    found = json.loads(out)
    assert code == 0 and len(found["values"]) == 10 and found["over"] == "parts"
    assert json.loads(run(*words)[1]) == found
    code, out, err = run(*words[:3], "--tokens", " north", " east", *words[6:])
    assert code == 2 and not out and "another sweep: measured" in err


def test_a_translator_needs_one_translation_of_both(run):
    texts = ("The cat sat.", "The dog sat.")
    code, _, err = run("sweep", *texts, "--to", "fr")
    assert code == 2 and "Give it by --target" in err
    words = ("--to", "fr", "--target", "Le", "--tokens", " chat", " chien", "--over", "parts")
    code, out, _ = run("sweep", *texts, *words)
    assert code == 0 and "decoder.3.cross" in out


def test_bad_input_is_one_sentence(run):
    for words, said in (
        ((*TEXTS, "--over", "layers"), "--over must be one of heads"),
        ((*TEXTS, "--method", "guess", *TOKENS), "must be one of patch, gradient, both"),
        ((*TEXTS, "--tokens", " north", "no such token"), "must be one of the vocabulary"),
        ((TEXTS[0], "The king", *TOKENS), "same number of tokens; got 1 × 9 and 1 × 2"),
        (TEXTS, "Name two tokens to compare by --tokens"),
        ((*TEXTS, "--position", "99"), "There are 9 positions"),
        ((*TEXTS, "--top", "0", *TOKENS), "--top must be at least 1; got 0"),
        ((TEXTS[0], "", *TOKENS), "at least one"),
    ):
        code, out, err = run("sweep", *words)
        assert code == 2 and not out and said in err and len(err.strip().splitlines()) == 1, err
