"""Tokens to text while a model is still writing: a piece is returned once it is certain."""

from collections.abc import Sequence

from glassformer.text import Tokenizer

# Tokens before a new one that are decoded with it: how a token reads may depend on its neighbours,
# such as the bytes before it, or whether it is the first.
_CONTEXT = 16


class TextStream:
    """The text of one sequence, token by token, up to its first stop string.

    >>> from glassformer.models.checkpoints import load
    >>> tokenizer = load("writer").tokenizer
    >>> stream = TextStream(tokenizer, prompt=[], stop=["sat"])
    >>> pieces = [stream.add(token) for token in tokenizer.encode("The cat sat on the mat.")]
    >>> "".join(pieces), stream.is_over
    ('The cat ', True)
    """

    def __init__(
        self, tokenizer: Tokenizer, *, prompt: Sequence[int] = (), stop: Sequence[str] = ()
    ) -> None:
        self.tokenizer = tokenizer
        self.tokens = list(prompt[-_CONTEXT:])  # the last ones: older ones change nothing
        self.text = tokenizer.decode(self.tokens)  # as far as it was passed on
        self.stop_filter = StopFilter(stop)
        self.is_ended = False

    @property
    def is_over(self) -> bool:
        return self.is_ended or self.stop_filter.is_stopped

    def add(self, token: int) -> str:
        """The text that became certain with this token; it may be empty."""
        if self.is_over:
            return ""
        self.tokens.append(token)
        text = self.tokenizer.decode(self.tokens)
        # A character may take several tokens: until its last byte, it decodes to U+FFFD.
        if text.endswith("\N{REPLACEMENT CHARACTER}"):
            return ""
        piece = self.stop_filter.add(self._advance(text))
        if len(self.tokens) > 3 * _CONTEXT and self.text == text:
            self.tokens = self.tokens[-_CONTEXT:]
            self.text = self.tokenizer.decode(self.tokens)
        return piece

    def finish(self) -> str:
        """The text that was held back, now that no token follows."""
        if self.is_over:
            return ""
        self.is_ended = True
        rest = self.stop_filter.add(self._advance(self.tokenizer.decode(self.tokens)))
        return rest + self.stop_filter.finish()

    def _advance(self, text: str) -> str:
        if not text.startswith(self.text):
            return ""
        new, self.text = text[len(self.text) :], text
        return new


class StopFilter:
    """Passes text on up to the first stop string, which may be spread over several pieces.

    >>> stops = StopFilter(["two"])
    >>> [stops.add(piece) for piece in ["one, t", "w", "o, three"]]
    ['one, ', '', '']
    """

    def __init__(self, stop: Sequence[str]) -> None:
        self.stop = stop
        self.held = ""  # possibly the beginning of a stop string
        self.is_stopped = False

    def add(self, piece: str) -> str:
        """The text that cannot belong to a stop string."""
        if self.is_stopped:
            return ""
        self.held += piece
        ends = [self.held.find(each) for each in self.stop if each in self.held]
        if ends:
            self.is_stopped = True
            return self.held[: min(ends)]
        overlap = max((_overlap(self.held, each) for each in self.stop), default=0)
        certain = len(self.held) - overlap
        passed, self.held = self.held[:certain], self.held[certain:]
        return passed

    def finish(self) -> str:
        """The text held back, which no stop string completed."""
        rest, self.held = self.held, ""
        return "" if self.is_stopped else rest


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of a text begin a stop string."""
    return next((n for n in range(len(stop) - 1, 0, -1) if text.endswith(stop[:n])), 0)
