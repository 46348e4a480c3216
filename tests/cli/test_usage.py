"""Words that no command takes: one sentence, in the language asked for, and nothing else."""

import pytest

WRONG = [
    (("look", "--heda", "3"), "look has no option --heda. Did you mean --head?", "没有选项 --heda"),
    (("look", "-z"), "look has no option -z.", "没有选项 -z"),
    (
        ("lok",),
        "glassformer has no command lok. Did you mean look?",
        "没有命令 lok。是不是想写 look",
    ),
    (("xyzzy",), "glassformer has no command xyzzy. See: glassformer --help", "没有命令 xyzzy"),
    (("generate", "a", "b"), "generate got an unexpected argument b", "不接受多余的参数 b"),
    (("evaluate",), "evaluate needs --source.", "缺少 --source"),
    (("practice", "hint"), "practice hint needs NAME", "缺少 NAME"),
    (("train", "--set"), "--set needs a value", "--set 后面需要一个值"),
    (("look", "a", "--json=3"), "--json takes no value", "--json 后面不带值"),
    (("generate", "a", "--max-new", "x"), "--max-new must be a whole number; got x", "必须是整数"),
    (("generate", "a", "--top-p=q"), "--top-p must be a number; got q", "--top-p 必须是数"),
]


@pytest.mark.parametrize(("words", "english", "chinese"), WRONG)
def test_one_sentence_and_where_to_look(run, words, english, chinese):
    code, out, err = run(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert english in err and err.endswith(" --help\n") and "…" not in err
    code, out, err = run(*words, "--lang", "zh")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert chinese in err and err.endswith(" --help --lang zh\n")


def test_the_help_it_points_to_is_that_of_the_command(run):
    _, _, err = run("practice", "hint", "--x")
    assert "See: glassformer practice hint --help" in err
    code, out, _ = run("practice", "hint", "--help")
    assert code == 0 and "glassformer practice hint " in out


def test_other_ends_keep_their_codes(run):
    assert run("--version")[0] == 0
    assert run("--help")[0] == 0
    assert run("models", "--help")[0] == 0
    assert run()[0] == 0
