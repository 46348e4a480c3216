"""The page inside a notebook: a frame that contains it, or a text if it cannot be shown."""

import html

from glassformer.errors import GlassformerError
from glassformer.languages import Language
from glassformer.render.page.document import page_html, page_size
from glassformer.tracing import Trace

_HEIGHT = 640  # pixels: room for the three columns of the page and some of the notebook
_MOST_BYTES = 20_000_000  # a notebook saves what it shows, in a file that people share


def inline_html(trace: Trace, language: Language) -> str:
    """A frame with the page; otherwise the reason and a list of the sites.

    The frame is sandboxed: it runs the page's script, but has no origin and can reach neither the
    notebook nor the network.
    """
    try:
        size = page_size(trace)
        if size > _MOST_BYTES:
            return _text(trace, language.say("inline.large", size=f"{size / 1e6:.0f}"), language)
        page = page_html(trace, language)
    except GlassformerError as error:
        return _text(trace, str(error), language)
    except Exception as error:  # otherwise a notebook would show a traceback
        return _text(trace, f"{type(error).__name__}: {error}", language)
    return (
        f'<iframe srcdoc="{html.escape(page)}" title="{html.escape(language.say("inline.title"))}" '
        f'sandbox="allow-scripts" width="100%" height="{_HEIGHT}" '
        'style="border: 1px solid #8884; border-radius: 6px"></iframe>'
    )


def _text(trace: Trace, sentence: str, language: Language) -> str:
    """A text fallback: computes nothing and escapes everything."""
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
