import pytest

from glassformer.errors import ConfigError
from glassformer.languages import detect


@pytest.mark.parametrize(
    ("environ", "code"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "ZH_TW"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "C"}, "en"),
        ({"LC_MESSAGES": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LC_ALL": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LC_MESSAGES": "", "LANG": "zh_CN.UTF-8"}, "zh"),
        ({"GLASSFORMER_LANG": "zh", "LC_ALL": "en_US.UTF-8"}, "zh"),
        ({"GLASSFORMER_LANG": "en", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"GLASSFORMER_LANG": "", "LANG": "zh_CN.UTF-8"}, "zh"),
    ],
)
def test_the_surroundings_decide(environ, code):
    assert detect(environ).code == code


def test_an_explicit_choice_comes_before_everything():
    assert detect({"GLASSFORMER_LANG": "zh", "LC_ALL": "zh_CN"}, choice="en").code == "en"
    assert detect({"GLASSFORMER_LANG": "nonsense"}, choice="zh").code == "zh"


@pytest.mark.parametrize(
    ("environ", "choice"), [({"GLASSFORMER_LANG": "fr"}, None), ({}, "fr"), ({}, "")]
)
def test_an_unknown_choice_is_refused(environ, choice):
    with pytest.raises(ConfigError, match=r"must be en \(English\) or zh \(中文\); got '(fr)?'"):
        detect(environ, choice)
