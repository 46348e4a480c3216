"""The guide to statistics for engines prints what the code prints, in both languages."""

from docs.guide_code import check_outputs, check_same_code

NAMES = ("statistics-for-engines.md", "statistics-for-engines.zh.md")


def test_every_output_is_what_the_code_prints() -> None:
    check_outputs(NAMES[0], least=25)


def test_both_languages_run_the_same_code() -> None:
    check_same_code(*NAMES)
