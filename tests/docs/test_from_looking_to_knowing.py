"""The guide from looking to knowing: what it prints is what the code prints, in both languages."""

from docs.guide_code import check_outputs, check_same_code

NAMES = ("from-looking-to-knowing.md", "from-looking-to-knowing.zh.md")


def test_every_output_is_what_the_code_prints() -> None:
    check_outputs(NAMES[0], least=15)


def test_both_languages_have_the_same_code_and_outputs() -> None:
    check_same_code(*NAMES)
