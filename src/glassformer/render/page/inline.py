"""The page inside a notebook: a frame that carries it whole, or a text where there can be none."""

import html

from glassformer.errors import GlassformerError
from glassformer.languages import Language
from glassformer.render.page.document import page_html, page_size
from glassformer.tracing import Trace

_HEIGHT = 640  # pixels: all of the page's three columns, and still something of the notebook
_MOST_BYTES = 20_000_000  # a notebook keeps what it shows, in a file that people pass around


def inline_html(trace: Trace, language: Language) -> str:
    """A frame with the page; without one, the reason in a sentence, and the sites by name.

    The frame may run the page's script and nothing else: it has no origin, and reaches neither the
    notebook nor a network.
    """
    try:
        size = page_size(trace)
        if size > _MOST_BYTES:
            return _text(trace, language.say("inline.large", size=f"{size / 1e6:.0f}"), language)
        page = page_html(trace, language)
    except GlassformerError as error:
        return _text(trace, str(error), language)
    except Exception as error:  # a notebook would show a traceback instead of the trace
        return _text(trace, f"{type(error).__name__}: {error}", language)
    return (
        f'<iframe srcdoc="{html.escape(page)}" title="{html.escape(language.say("inline.title"))}" '
        f'sandbox="allow-scripts" width="100%" height="{_HEIGHT}" '
        'style="border: 1px solid #8884; border-radius: 6px"></iframe>'
    )


def _text(trace: Trace, sentence: str, language: Language) -> str:
    """What can be said in any case: nothing is computed, every word is escaped."""
    rows = [
        f"<tr><td><bdi>{html.escape(name)}</bdi></td>"
        f"<td>{' × '.join(map(str, site.shape))}</td></tr>"
        for run in trace.runs[-1:]
        for name, site in run.sites.items()
    ]
    heads = "".join(
        f"<th>{html.escape(name)}</th>"
        for name in (language.say("inline.site"), language.say("inline.shape"))
    )
    table = f"<table><tr>{heads}</tr>{''.join(rows)}</table>" if rows else ""
    return f"<div><p>{html.escape(sentence)}</p>{table}</div>"
