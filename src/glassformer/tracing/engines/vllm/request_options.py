"""What a request asks to have recorded, in names and values that engines pass on unread.

SamplingParams(extra_args={"glassformer": "trace", "glassformer_layers": [0, 5]})

A server takes the same names in the body of a request, under `vllm_xargs`: hence no nesting, values
are texts, numbers or lists of them.
"""

from dataclasses import dataclass
from typing import Any, Literal

from glassformer.errors import TraceError
from glassformer.tracing.operand_store import parse_bytes
from glassformer.tracing.selection import Selection

NAME = "glassformer"  # asks for a recording
KEY = f"{NAME}_key"  # under which a server records it: set by our endpoint, never by clients
KINDS = ("trace", "statistics")
_OPTIONS = ("layers", "heads", "rows", "every", "budget", "top")

Kind = Literal["trace", "statistics"]


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """What is recorded of one request, and what comes back: a trace, or statistics alone."""

    kind: Kind
    selection: Selection
    limit: int | None  # in bytes
    top: int  # how many keys of each query are named in statistics

    @classmethod
    def read(
        cls, given: dict[str, Any] | None, defaults: Selection, limit: int | None = None
    ) -> "RequestOptions | None":
        """The options of a request; None where it does not ask. Raise a TraceError for bad ones.

        >>> RequestOptions.read({"session": 3}, Selection())
        >>> RequestOptions.read({"glassformer": "trace", "glassformer_rows": "last"}, Selection())
        RequestOptions(kind='trace', selection=Selection(layers=None, heads=None, rows='last', \
every=1), limit=None, top=5)
        """
        if not given or NAME not in given:
            return None
        own = {name: value for name, value in given.items() if name.startswith(f"{NAME}_")}
        own.pop(KEY, None)
        for name in own:
            if name.removeprefix(f"{NAME}_") not in _OPTIONS:
                known = ", ".join(f"{NAME}_{option}" for option in _OPTIONS)
                raise TraceError(f"Options of a recorded request are {known}; got {name}.")
        if given[NAME] not in KINDS:
            raise TraceError(f'{NAME} must be "trace" or "statistics"; got {given[NAME]!r}.')
        asked = own.get(f"{NAME}_budget")
        budget = None if asked is None else parse_bytes(asked)
        return cls(
            kind=given[NAME],
            selection=Selection(
                layers=_read_numbers(own, "layers", defaults.layers),
                heads=_read_numbers(own, "heads", defaults.heads),
                rows=_read_rows(own, defaults.rows),
                every=_read_number(own, "every", defaults.every),
            ),
            limit=min((n for n in (budget, limit) if n is not None), default=None),
            top=_read_number(own, "top", 5, most=100),
        )


def _read_rows(own: dict[str, Any], default: Any) -> Any:
    name = f"{NAME}_rows"
    if name not in own or own[name] == "last":
        return own.get(name, default)
    return _as_numbers(own[name])


def _read_numbers(own: dict[str, Any], option: str, default: Any) -> Any:
    name = f"{NAME}_{option}"
    return _as_numbers(own[name]) if name in own else default


def _as_numbers(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list) or not all(map(_is_whole, values)):
        raise TraceError(
            f'Layers, heads and rows must be lists of numbers, or rows "last"; got {values!r}.'
        )
    return tuple(sorted(int(value) for value in values))


def _read_number(own: dict[str, Any], option: str, default: int, most: int = 1 << 31) -> int:
    value = own.get(f"{NAME}_{option}", default)
    if not _is_whole(value) or not 1 <= value <= most:
        raise TraceError(f"{NAME}_{option} must be a whole number from 1 to {most}; got {value!r}.")
    return int(value)


def _is_whole(value: Any) -> bool:
    """Also 3.0: what passes through JSON may have lost its type."""
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)
