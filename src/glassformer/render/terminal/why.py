"""Why a token was written, as a tree: parts below the token, source tokens below the heads."""

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from glassformer.analysis import Why
from glassformer.languages import Language
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
        branch = tree.add(_draw_term(reason.value, reason.name))
        for source in reason.sources:
            branch.add(
                _draw_term(source.value, f"{visible_token(source.token)} ({source.position})")
            )
        if reason.sources:
            branch.add(_draw_term(reason.rest, say("why.tokens"), style="dim"))
    tree.add(_draw_term(found.rest, say("why.rest"), style="dim"))
    verdict = found.verdict
    if verdict is None:
        judged = say("why.untested", reason=found.without_verdict)
    else:
        judged = say(
            "why.verdict.faithful" if verdict.is_faithful else "why.verdict.unfaithful",
            carried=f"{100 * verdict.carried:.0f}",
            needed=f"{100 * verdict.needed:.0f}",
        )
    notes = [Paragraph(judged), Paragraph(say("why.legend"), style="dim")]
    return Group(tree, *notes)


def _draw_term(value: float, name: str, *, style: str = "") -> Text:
    colour = style or ("green" if value > 0 else "red")
    return Text.assemble((f"{value:+7.3f}", colour), "  ", (name, style))
