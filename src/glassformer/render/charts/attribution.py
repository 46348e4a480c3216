"""Contribution bars: what each part, head, look or neuron adds to a logit."""

from typing import Literal

from glassformer.analysis import Attribution
from glassformer.languages import Language
from glassformer.render.chart import Axis, Bars, Chart, Series
from glassformer.render.charts.labels import as_number, name_frozen, title_of_run
from glassformer.render.marks import visible_token
from glassformer.render.numbers import MINUS
from glassformer.render.paragraph import join_sentences

Order = Literal["size", "layer"]


def chart_of_attribution(
    found: Attribution, language: Language, *, top: int = 24, order: Order = "size"
) -> Chart:
    """The largest contributions as signed bars; the others and the rounding as two more.

    All bars together are the logit. In the order of layers, the last layer is on top.
    """
    say = language.say
    chosen = found.top(top)
    if order == "layer":
        kept = {id(share) for share in chosen}
        chosen = [share for share in reversed(found.shares) if id(share) in kept]
    rest = [(say("chart.rounding"), found.remainder)]
    n_left = len(found.shares) - len(chosen)
    if n_left:
        others = sum(s.value for s in found.shares) - sum(s.value for s in chosen)
        rest.insert(0, (say("chart.others", n=n_left), others))
    names = (*(share.name for share in chosen), *(name for name, _ in rest))
    values = (*(share.value for share in chosen), *(value for _, value in rest))
    token, position = visible_token(found.token), visible_token(found.position)
    if found.against is None:
        title = say("chart.attribution", token=token, position=position)
    else:
        other = visible_token(found.against)
        title = say("chart.attribution.difference", token=token, other=other, position=position)
    value = f"{found.logit:+.3f}".replace("-", MINUS)
    panel = Bars(
        title=title,
        y=Axis(label=say("chart.contribution")),
        names=names,
        series=(Series(name=say("chart.contribution"), values=tuple(map(as_number, values))),),
        is_signed=True,
        n_rest=len(rest),
    )
    sentences = [say("chart.attribution.caption", value=value)]
    if found.frozen:
        sentences.append(say("chart.frozen", frozen=name_frozen(found.frozen, language)))
    return Chart(
        (panel,),
        title_of_run(found.model, found.positions, language),
        join_sentences(sentences, language),
    )
