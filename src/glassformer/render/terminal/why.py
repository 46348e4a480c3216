"""Why a token was written, as a tree: parts below the token, tokens below heads, and so on."""

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from glassformer.analysis import Reason, Why
from glassformer.languages import Language
from glassformer.render.charts.why import name_reason, tell_verdict
from glassformer.render.marks import visible_token
from glassformer.render.paragraph import Paragraph


def draw_why(found: Why, *, language: Language) -> RenderableType:
    """The tree of contributions, and the verdict."""
    say = language.say
    names = {
        "token": visible_token(found.token),
        "other": visible_token(found.against),
        "position": visible_token(found.position),
    }
    tree = Tree(Text(say("why.root", **names, value=f"{found.logit:+.2f}")))
    for reason in found.reasons:
        _add_reason(tree, reason, language)
    tree.add(_draw_term(found.rest, say("why.rest"), style="dim"))
    notes = [Paragraph(tell_verdict(found, language)), Paragraph(say("why.legend"), style="dim")]
    return Group(tree, *notes)


def _add_reason(tree: Tree, reason: Reason, language: Language) -> None:
    say = language.say
    branch = tree.add(_draw_term(reason.value, name_reason(reason, language)))
    for each in reason.reasons:
        _add_reason(branch, each, language)
    if reason.reasons and reason.kind != "look":
        is_head = all(each.kind == "look" for each in reason.reasons)
        rest = say("why.tokens") if is_head else say("why.others")
        branch.add(_draw_term(reason.rest, rest, style="dim"))
    if reason.note:
        branch.add(Text(say("why.unsplit", reason=reason.note), style="dim"))


def _draw_term(value: float, name: str, *, style: str = "") -> Text:
    colour = style or ("green" if value > 0 else "red")
    return Text.assemble((f"{value:+7.3f}", colour), "  ", (name, style))
