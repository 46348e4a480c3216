"""Why a token was written, as a tree: what each node adds, and the remainder beside it."""

from glassformer.analysis import Reason, Why
from glassformer.languages import Language
from glassformer.render.charts.labels import as_number
from glassformer.render.marks import visible_token
from glassformer.render.numbers import MINUS
from glassformer.render.paragraph import join_sentences
from glassformer.render.tree import Node, Tree

_SCORES = ("score", "query", "key")  # in the units of the softmax


def tree_of_why(found: Why, language: Language) -> Tree:
    """The difference of two logits, below it its reasons and the rest; the verdict as text."""
    say = language.say
    token, other = visible_token(found.token), visible_token(found.against)
    title = say(
        "why.root",
        token=token,
        other=other,
        position=visible_token(found.position),
        value=_signed(found.logit, 2),
    )
    rest = [Node(name=say("why.rest"), value=as_number(found.rest), is_rest=True)]
    if found.remainder:
        rest.append(
            Node(name=say("chart.rounding"), value=as_number(found.remainder), is_rest=True)
        )
    children = (*(_as_node(reason, language) for reason in found.reasons), *rest)
    root = Node(name=f"{token} {MINUS} {other}", value=as_number(found.logit), children=children)
    return Tree(
        root=root, title=title, caption=say("why.legend"), verdict=tell_verdict(found, language)
    )


def tell_verdict(found: Why, language: Language) -> str:
    """What running the model without the named parts, and with them alone, has shown."""
    verdict, say = found.verdict, language.say
    if verdict is None:
        return say("why.untested", reason=found.without_verdict)
    if not verdict.is_telling:
        return say("why.verdict.silent", none=f"{verdict.none:+.2f}")
    measured = say(
        "why.verdict",
        n=verdict.n_parts,
        carried=f"{100 * verdict.carried:.0f}",
        needed=f"{100 * verdict.needed:.0f}",
        draws=len(verdict.random_kept),
        close=verdict.as_close,
        lost=verdict.as_needed,
    )
    concluded = {
        (True, True): say("why.verdict.both"),
        (True, False): say("why.verdict.enough"),
        (False, True): say("why.verdict.needed"),
        (False, False): say("why.verdict.neither"),
    }[verdict.is_enough, verdict.is_needed]
    return join_sentences([measured, concluded], language)


def name_reason(reason: Reason, language: Language) -> str:
    """What a node of the tree is called."""
    say = language.say
    if reason.kind == "look":
        return say(
            "why.look",
            token=visible_token(reason.name),
            position=reason.position,
            weight=f"{reason.weight or 0.0:.2f}",
        )
    if reason.kind == "value":
        return say("why.value")
    if reason.kind == "score":
        return say("why.score")
    return say("why.query", name=reason.name) if reason.kind == "query" else reason.name


def _as_node(reason: Reason, language: Language) -> Node:
    say = language.say
    unit = "score" if reason.kind in _SCORES else ""
    children = [_as_node(each, language) for each in reason.reasons]
    is_look = reason.kind == "look"
    if children and not is_look:
        is_head = all(each.kind == "look" for each in reason.reasons)
        name = say("why.tokens") if is_head else say("why.others")
        children.append(Node(name=name, value=as_number(reason.rest), unit=unit, is_rest=True))
    return Node(
        name=_name_briefly(reason, language),
        value=as_number(reason.value),
        note=_explain(reason, language),
        unit=unit,
        is_sum=not is_look,
        children=tuple(children),
    )


def _name_briefly(reason: Reason, language: Language) -> str:
    """What a node is called where there is little room."""
    say = language.say
    if reason.kind == "look":
        return f"{visible_token(reason.name)} ({reason.position})"
    if reason.kind == "value":
        return say("chart.why.value")
    if reason.kind == "score":
        return say("chart.why.score")
    letter = {"query": "q ← ", "key": "k ← "}.get(reason.kind, "")
    return f"{letter}{reason.name}"


def _explain(reason: Reason, language: Language) -> str:
    """How the number of a node comes about, and why it is not split further."""
    say = language.say
    sentences = []
    if reason.kind == "look" and reason.weight:
        product = {
            "weight": f"{reason.weight:.4g}",
            "value": _signed(reason.value / reason.weight, 4),
            "product": _signed(reason.value, 4),
        }
        sentences.append(say("why.product", **product))
    elif reason.kind == "value":
        sentences.append(say("chart.why.value.note"))
    elif reason.kind == "score":
        sentences.append(say("chart.why.score.note"))
    elif reason.kind == "query":
        sentences.append(say("chart.why.query.note", name=reason.name))
    elif reason.kind == "key":
        sentences.append(say("chart.why.key.note", name=reason.name))
    if reason.note:
        sentences.append(say("why.unsplit", reason=reason.note))
    return join_sentences(sentences, language)


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", MINUS)
