"""Translation quality: BLEU and chrF, computed by sacreBLEU (Post 2018)."""

from collections.abc import Callable, Sequence
from typing import Any

from glassformer.errors import ConfigError
from glassformer.generation import rank_translations
from glassformer.installation import install_command


def translate_all(
    model: Any,
    sources: Sequence[str],
    *,
    beams: int = 1,
    length_penalty: float = 1.0,
    max_new_tokens: int | None = None,
    shortlist: bool = False,
    progress: Callable[[int], None] | None = None,
) -> list[str]:
    """Translate each text, with a model that may be in the middle of training.

    `progress` receives the number of texts translated so far.
    """
    was_training = model.training
    model.eval()
    found = rank_translations(
        model,
        sources,
        beams=beams,
        length_penalty=length_penalty,
        max_new_tokens=max_new_tokens,
        shortlist=shortlist,
        progress=progress,
    )
    model.train(was_training)
    return [best[0].text for best in found]


def score_translations(
    found: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: str = "13a",
    remove: str = "",
) -> dict[str, float]:
    """Corpus-level BLEU and chrF; a text may have several references.

    >>> score_translations(["a cat sat here"], [["a cat sat here", "a dog"]])
    {'bleu': 100.0, 'chrf': 100.0}
    """
    sacrebleu = _import_sacrebleu()
    if remove:
        found = [text.replace(remove, "") for text in found]
        references = [[text.replace(remove, "") for text in texts] for texts in references]
    most = max(len(texts) for texts in references)
    columns = [[t[i] if i < len(t) else None for t in references] for i in range(most)]
    check_scoring(tokenize)
    bleu = sacrebleu.corpus_bleu(list(found), columns, tokenize=tokenize, force=tokenize == "none")
    chrf = sacrebleu.corpus_chrf(list(found), columns)
    return {"bleu": round(bleu.score, 4), "chrf": round(chrf.score, 4)}


def check_scoring(tokenize: str) -> None:
    """Reject a tokenization that sacrebleu does not know, before anything is translated."""
    known = sorted(_import_sacrebleu().metrics.bleu.BLEU.TOKENIZERS)
    if tokenize not in known:
        raise ConfigError(f"tokenize must be one of {', '.join(known)}; got {tokenize!r}.")


def has_sacrebleu() -> bool:
    """Whether sacrebleu is installed, which scoring needs."""
    try:
        import sacrebleu  # noqa: F401
    except ImportError:
        return False
    return True


def _import_sacrebleu() -> Any:
    try:
        import sacrebleu
    except ImportError:
        raise ConfigError(
            "BLEU needs the package sacrebleu, which is not installed. "
            f"Run: {install_command('train')}"
        ) from None
    return sacrebleu
