"""Chat templates: a question in the format that a model was trained on."""

from glassformer.errors import CheckpointError
from glassformer.text.special_tokens import SpecialTokens
from glassformer.text.tokenizer import Tokenizer


def as_chat(question: str, tokenizer: Tokenizer, special: SpecialTokens) -> str:
    """Format a question with the tokenizer's chat template (Jinja, sandboxed)."""
    if tokenizer.chat_template is None:
        raise CheckpointError(
            "Only models trained on conversations have a chat template; this one has none. "
            "Give it the beginning of a text to continue instead."
        )
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    try:
        template = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(
            tokenizer.chat_template
        )
        return template.render(
            messages=[{"role": "user", "content": question}],
            add_generation_prompt=True,
            bos_token="" if special.begin is None else tokenizer.piece(special.begin),
            eos_token=tokenizer.piece(special.end[0]) if special.end else "",
        )
    except TemplateError as error:
        raise CheckpointError(f"The model's chat template cannot be used: {error}.") from None
