"""A text that has nothing to do with a question: its means stand in for parts that are removed."""

from glassformer.analysis.traced_text import trace_text
from glassformer.models import Decoder, EncoderDecoder
from glassformer.models.checkpoints import Model
from glassformer.tracing import Trace

NEUTRAL = (
    "Before dawn the baker lights the oven, and by the time the street wakes up there is bread in "
    "every window. Children run past on their way to school, a dog follows them as far as the "
    "corner, and somebody upstairs practises the same four bars on a piano. It rains a little, "
    "then it stops; nobody minds. In the afternoon letters arrive, most of them bills, and the "
    "river carries leaves under the old bridge towards the sea."
)


def record_reference(model: Model, text: str | None = None) -> Trace | None:
    """A model on another text; None where only the text itself can stand in."""
    if isinstance(model, EncoderDecoder) or (text is None and not isinstance(model, Decoder)):
        return None
    return trace_text(model, NEUTRAL if text is None else text, residual=True)
