from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from glassformer.errors import ConfigError
from glassformer.settings import (
    Bounds,
    Count,
    Share,
    Tagged,
    as_plain,
    check_bounds,
    check_choice,
    check_names,
    read_settings,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    rate: float
    until: Count | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    dim: Count
    kind: Literal["wide", "narrow"] = "wide"
    names: tuple[str, ...] = ()
    dropout: Share = 0.0
    angle: Annotated[float, Bounds(above=0, most=180)] = 90.0
    curve: Annotated[Curve | None, Tagged({"curve": Curve})] = None
    rest: dict[str, Any] | None = None
    column: Count | str = 1
    flag: bool = False

    def __post_init__(self) -> None:
        check_bounds(self, "sizes.")


def test_values_become_what_their_types_say() -> None:
    found = read_settings(
        Sizes,
        {
            "dim": 3,
            "names": ["a", "b"],
            "angle": 30,
            "curve": {"kind": "curve", "rate": 1, "until": 7},
            "column": "text",
            "rest": {"a": [1]},
        },
    )
    assert found == Sizes(
        dim=3,
        names=("a", "b"),
        angle=30.0,
        curve=Curve(rate=1.0, until=7),
        column="text",
        rest={"a": [1]},
    )
    assert isinstance(found.angle, float)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (3, r"The config must be a table of settings; got 3\."),
        ({}, r"The config must have the setting dim; it is missing\."),
        ({"dmi": 3}, r"The config has no setting dmi\. Did you mean dim\?"),
        ({"zz": 3}, r"has no setting zz\. Known: dim, kind, names"),
        ({"dim": True}, r"dim must be a whole number; got True\."),
        ({"dim": 1.0}, r"dim must be a whole number; got 1\.0\."),
        ({"dim": 0}, r"dim must be at least 1; got 0\."),
        ({"dim": 2**31}, r"dim must be at most 2,147,483,647; got 2147483648\."),
        ({"dim": 2**63}, r"dim must be a whole number of 64 bits; got 9223372036854775808\."),
        ({"dim": 1, "kind": "wid"}, r"kind must be one of wide, narrow; got 'wid'\. Did you mean"),
        ({"dim": 1, "kind": []}, r"kind must be one of wide, narrow; got \[\]\."),
        ({"dim": 1, "names": ["a", 3]}, r"names\.1 must be a string; got 3\."),
        ({"dim": 1, "dropout": 1}, r"dropout must be at least 0 and less than 1; got 1\.0\."),
        ({"dim": 1, "angle": 0}, r"angle must be greater than 0 and at most 180; got 0\.0\."),
        ({"dim": 1, "angle": float("nan")}, r"angle must be a finite number; got nan\."),
        ({"dim": 1, "angle": 10**400}, r"angle must be a number; got 1000"),
        ({"dim": 1, "curve": {"kind": "line"}}, r"curve\.kind must be one of curve; got 'line'"),
        ({"dim": 1, "curve": 3}, r"curve\.kind must be one of curve; got None"),
        ({"dim": 1, "curve": {"kind": "curve"}}, r"must have the setting curve\.rate"),
        ({"dim": 1, "rest": []}, r"rest must be a table of settings; got \[\]"),
        ({"dim": 1, "column": 0}, r"column must be at least 1; got 0"),
        ({"dim": 1, "flag": 1}, r"flag must be true or false; got 1"),
    ],
)
def test_what_does_not_fit_is_named(values: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        read_settings(Sizes, values)


def test_plain_values_read_back_as_the_same_settings() -> None:
    settings = Sizes(dim=3, names=("a",), curve=Curve(rate=1.0), rest={"a": (1, None)})
    plain = as_plain(settings)
    assert plain["curve"] == {"kind": "curve", "rate": 1.0, "until": None}
    assert plain["names"] == ["a"] and plain["rest"] == {"a": [1, None]}
    assert read_settings(Sizes, {**plain, "rest": {"a": (1, None)}}) == settings
    short = as_plain(settings, keep_none=False)  # TOML has no null
    assert short["curve"] == {"kind": "curve", "rate": 1.0}
    assert read_settings(Sizes, {**short, "rest": {"a": (1, None)}}) == settings


@pytest.mark.plain
def test_names_and_choices_of_ones_own_get_a_suggestion() -> None:
    check_names(["dim"], ["dim", "preset"])
    with pytest.raises(
        ConfigError, match=r"The recipe has no setting model\.prest\. Did you mean "
    ):
        check_names(["prest"], ["dim", "preset"], "The recipe", "model.")
    check_choice("xavier", ["ours", "xavier"], "model.initial")
    with pytest.raises(ConfigError, match=r"must be one of ours, xavier; got 'xaver'\. Did you"):
        check_choice("xaver", ["ours", "xavier"], "model.initial")


@pytest.mark.plain
def test_bounds_hold_in_python_too() -> None:
    with pytest.raises(ConfigError, match=r"sizes\.dim must be at least 1; got 0\."):
        Sizes(dim=0)
    with pytest.raises(ConfigError, match=r"sizes\.kind must be one of wide, narrow; got 'odd'"):
        Sizes(dim=1, kind="odd")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"sizes\.angle must be .*; got nan"):
        Sizes(dim=1, angle=float("nan"))


@pytest.mark.plain
def test_a_long_value_makes_no_long_sentence() -> None:
    with pytest.raises(ConfigError) as caught:
        read_settings(Sizes, {"dim": "x" * 10**6})
    assert len(str(caught.value)) < 200
