"""What a bisection found, in sentences: only what the numbers carry."""

from typing import Any

from glassformer.analysis.bisection.bisection import Bisection, Origin
from glassformer.analysis.bisection.changed_token import ChangedToken
from glassformer.analysis.bisection.kinds import Kind
from glassformer.languages import Language

_MOST_LISTED = 6


def tell_bisection(found: Bisection, language: Language) -> str:
    """The verdict: what differs first, what kind of difference it is, and what it changes."""
    say, origin = language.say, found.origin
    if origin is None:
        dtype = found.dtypes[0] if len(set(found.dtypes)) == 1 else " / ".join(found.dtypes)
        sentences = [say("bisect.same", dtype=dtype, size=_number(found.largest))]
    else:
        sentences = [_tell_origin(origin, language), *_tell_kinds(origin, language)]
    sentences.append(_tell_shares(found, language))
    if found.token is not None:
        sentences.append(tell_token(found.token, language))
    if not found.has_stream:
        sentences.append(say("bisect.without.stream"))
    if not found.has_outputs:
        sentences.append(say("bisect.without.outputs"))
    between = "" if language.code == "zh" else " "
    told = between.join(sentence for sentence in sentences if sentence)
    return told if told.isprintable() else repr(told)[1:-1]  # names may be read from files


def _tell_origin(origin: Origin, language: Language) -> str:
    say = language.say
    size = _number(max(origin.apart.values()))
    operand, *_ = origin.operands
    where = _tell_place(origin, language)
    named = [o for o in origin.operands if o in ("q", "k", "v")]
    if named:
        words = {"q": say("bisect.q"), "k": say("bisect.k"), "v": say("bisect.v")}
        *rest, last = (words[o] for o in named)
        what = say("bisect.and").join([say("bisect.comma").join(rest), last] if rest else [last])
        what = what[:1].upper() + what[1:]
        return say("bisect.operands", what=what, name=origin.name, size=size, where=where)
    values = {"name": origin.name, "size": size, "where": where}
    if operand == "out":
        side = say("bisect.run.first") if origin.is_first else say("bisect.run.second")
        return say("bisect.out", side=side, **values)
    return {
        "start": say("bisect.start", **values),
        "written": say("bisect.written", **values),
        "mlp": say("bisect.mlp", **values),
        "mask": say("bisect.mask", name=origin.name),
        "bias": say("bisect.bias", **values),
        "scale": say("bisect.scale", name=origin.name),
        "softcap": say("bisect.softcap", name=origin.name),
        "norm": say("bisect.norm", name=origin.name),
    }[operand]


def _tell_place(origin: Origin, language: Language) -> str:
    """The heads and positions that differ, where they are not all of them."""
    say, parts = language.say, ""
    if origin.heads is not None:
        heads = _list(origin.heads)
        is_one = len(origin.heads) == 1
        parts += say("bisect.head", head=heads) if is_one else say("bisect.heads", heads=heads)
    rows = list(origin.positions or ())
    if rows and len(rows) > 1 and rows == list(range(rows[0], rows[-1] + 1)):
        parts += say("bisect.rows.from", row=rows[0])
    elif rows:
        parts += say("bisect.rows.at", rows=_list(rows))
    return parts


def _tell_kinds(origin: Origin, language: Language) -> list[str]:
    """One sentence for a kind that all operands share, else one for each."""
    if not origin.kinds:
        return [language.say("bisect.unknown")]
    if origin.kind is not None:
        return [tell_kind(origin.kind, language)]
    names = {"q": "Q", "k": "K", "v": "V"}
    told = []
    for operand in origin.operands:
        kind = origin.kinds.get(operand)
        sentence = language.say("bisect.unknown") if kind is None else tell_kind(kind, language)
        told.append(language.say("bisect.each", operand=names.get(operand, operand), told=sentence))
    return told


def tell_kind(kind: Kind, language: Language) -> str:
    """A kind of difference, with its numbers."""
    say, values = language.say, kind.values
    if kind.name == "rotated":
        return _tell_rotation(values, language)
    if kind.name == "mask":
        return _tell_mask(values, language)
    if kind.name.startswith("kernel"):
        return _tell_kernel(kind, language)
    if kind.name == "rescaled":
        low, high = _number(values["low"]), _number(values["high"])
        if "epsilon" not in values:
            return say("bisect.kind.rescaled", low=low, high=high)
        more = f"{values['epsilon']:+.3g}"
        return say("bisect.kind.epsilon", low=low, high=high, more=more)
    if kind.name == "coordinates":
        return _tell_coordinates(values, language)
    if kind.name == "constant":
        return say("bisect.kind.turned") if "before" in values else say("bisect.kind.constant")
    if kind.name in ("scale", "softcap"):
        none = say("bisect.none")
        first, second = (
            none if values[n] is None else _number(values[n]) for n in ("first", "second")
        )
        return say("bisect.instead", first=first, second=second)
    if kind.name == "norm":
        if values["kind"] == "gain":
            return say("bisect.kind.gain")
        first, second = _number(values["first"]), _number(values["second"])
        return say("bisect.instead", first=f"ε = {first}", second=f"ε = {second}")
    if kind.name == "permuted":
        pairs = ", ".join(f"{h} ← {j}" for h, j in values["heads"].items())
        return say("bisect.kind.permuted", pairs=pairs)
    if kind.name == "rounded":
        is_first = values["side"] == "first"
        side = say("bisect.run.first") if is_first else say("bisect.run.second")
        return say("bisect.kind.rounded", dtype=values["dtype"], side=side)
    return {
        "infinite": lambda: say("bisect.kind.infinite"),
        "zeroed": lambda: say("bisect.kind.zeroed", side=say("bisect.run.second")),
        "zeroed first": lambda: say("bisect.kind.zeroed", side=say("bisect.run.first")),
        "scaled": lambda: say("bisect.kind.scaled", factor=_number(values["factor"])),
        "shifted": lambda: say("bisect.kind.shifted", by=f"{values['by']:+d}"),
        "transposed": lambda: say("bisect.kind.transposed"),
        "even": lambda: say("bisect.kind.even", bits=values["bits"]),
        "other layer": lambda: say("bisect.kind.layer", layer=values["layer"]),
        "places": lambda: say("bisect.kind.places", by=f"{values['by']:+d}", pairs=values["pairs"]),
    }[kind.name]()


def _tell_rotation(values: dict[str, Any], language: Language) -> str:
    say = language.say
    law = values.get("law", "angles")
    if law == "base":
        first, second = f"{values['first']:.6g}", f"{values['second']:.6g}"
        return say("bisect.kind.base", first=first, second=second)
    if law == "positions":
        return say("bisect.kind.positions", by=f"{values['by']:+.3g}")
    if law == "factor":
        return say("bisect.kind.factor", factor=_number(values["factor"]))
    return say("bisect.kind.angles")


def _tell_mask(values: dict[str, Any], language: Language) -> str:
    say = language.say
    if values["kind"] == "right":
        by, future = values["by"], values["future"]
        if by < 0:
            return say("bisect.mask.fewer", by=-by)
        return say("bisect.mask.more", by=by, future=future)
    if values["kind"] == "left":
        return say("bisect.mask.window", first=values["first"], second=values["second"])
    if values["kind"] == "keys":
        keys = _list(values["keys"])
        if values["opened"]:
            return say("bisect.mask.opened", keys=keys)
        return say("bisect.mask.closed", keys=keys)
    return say("bisect.mask.cells", opened=values["opened"], closed=values["closed"])


def _tell_kernel(kind: Kind, language: Language) -> str:
    say, values = language.say, kind.values
    if kind.name == "kernel scale":
        first, second = _number(values["first"]), _number(values["second"])
        return say("bisect.kernel.scale", first=first, second=second)
    if kind.name == "kernel softcap":
        return say("bisect.kernel.softcap", first=_number(values["first"]))
    if kind.name == "kernel mask":
        by = values["by"]
        if by is None:
            return say("bisect.kernel.unmasked")
        if by == "corner":
            return say("bisect.kernel.corner")
        return say("bisect.kernel.mask", by=f"{by:+d}")
    if kind.name == "kernel window":
        return say("bisect.kernel.window", by=f"{values['by']:+d}")
    return {
        "kernel bias": say("bisect.kernel.bias"),
        "kernel groups": say("bisect.kernel.groups"),
    }[kind.name]


def _tell_coordinates(values: dict[str, Any], language: Language) -> str:
    say = language.say
    if values["of"] == 1:
        return say("bisect.kind.features", places=_list([i for _, i in values["places"]]))
    places = "; ".join(f"{head}: {i}" for head, i in values["places"][:_MOST_LISTED])
    if "feature" in values:
        return say("bisect.kind.weight", places=places, feature=values["feature"])
    return say("bisect.kind.coordinates", places=places)


def _tell_shares(found: Bisection, language: Language) -> str:
    """How much of the last layer's difference is due to operands, and how much to the kernel."""
    judged = [layer for layer in found.layers if layer.kernel is not None]
    if not judged or found.origin is None:
        return ""
    last = judged[-1]
    return language.say(
        "bisect.shares",
        name=last.name,
        size=_number(last.apart["out"]),
        operands=_number(last.operands or 0.0),
        kernel=_number(last.kernel or 0.0),
    )


def tell_token(token: ChangedToken, language: Language) -> str:
    """The first token that changes, and the margins."""
    say = language.say
    values = {"position": token.position, "first": token.first, "second": token.second}
    if token.margin is None:
        return say("bisect.token", **values)
    if token.other_margin is None:
        return say("bisect.token.margin", **values, margin=_number(token.margin))
    return say(
        "bisect.token.margins",
        **values,
        margin=_number(token.margin),
        other=_number(token.other_margin),
    )


def _number(value: float) -> str:
    return f"{value:.3g}"


def _list(numbers: Any) -> str:
    some = [str(n) for n in list(numbers)[:_MOST_LISTED]]
    return ", ".join(some) + (", …" if len(numbers) > _MOST_LISTED else "")
