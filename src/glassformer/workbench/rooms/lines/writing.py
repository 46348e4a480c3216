"""Writing: the text with its settings, and the choices of one of its tokens."""

from typing import Any

from glassformer.generation.continuation import tokenizer_of
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.lines.reading import READ_CHANGES, load_ours, write_text
from glassformer.workbench.rooms.writing import begin_writing
from glassformer.workbench.wire.lines import WriteLinesRequest


def write_writing(asked: WriteLinesRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """A program that writes the same text and prints what else could have been written."""
    beginning = begin_writing(asked, memory)
    progress(0.0)
    model = beginning.model
    program = load_ours(asked, memory)
    add = program.lines.append
    under = ""  # of interventions
    if asked.change is not None:
        program.imports.add(READ_CHANGES)
        add(f"changes = read_changes({asked.change!r})")
        under = ", gf.change(model, changes)"
    text, source, inputs = write_text(model, asked), "", "torch.tensor([[*prompt, *tokens]])"
    decoded, forbidden = "model.tokenizer.decode(tokens)", ""
    if beginning.source is not None:
        program.imports.add("from glassformer.generation import read_source")
        program.imports.add("from glassformer.generation.copied_spans import insert_spans")
        restricted = "" if beginning.source.forbidden is not None else ", restricted=False"
        add(f"source = read_source(model, {asked.text!r}, {asked.to!r}{restricted})")
        add(f"prompt = {beginning.prompt}")
        source, inputs = ", source=[source.tokens]", f"torch.tensor([source.tokens]), {inputs}"
        decoded = "insert_spans(model, source, tokens)"
        if not restricted:
            forbidden = ", source.forbidden[None]"
            source += ", forbidden=source.forbidden[None]"
    elif beginning.prompt == tokenizer_of(model).encode(text):
        add(f"prompt = model.tokenizer.encode({text!r})")
    else:
        add(f"prompt = {beginning.prompt}")
    add(f"tokens = {list(asked.kept)}  # kept; the rest is written")
    most = min(asked.max_new_tokens, model.config.max_len - len(beginning.prompt))
    n_new = max(most - len(asked.kept), 0 if asked.kept else 1)
    sampling = _write_sampling(asked)
    writer = "beam_search" if asked.beams > 1 else "generate_tokens"
    program.imports.add(f"from glassformer.generation import Sampling, adjust, {writer}")
    program.imports.add("from glassformer.generation.sampling import exclude_tokens")
    add(f"sampling = Sampling({sampling})")
    if n_new > 0:
        how = f"max_new_tokens={n_new}, stop=model.special.end, never=model.special.never{source}"
        add(f"with torch.no_grad(){under}:")
        if asked.beams > 1:
            search = f"beam_search(model, [[*prompt, *tokens]], beams={asked.beams}, {how})"
            add(f"    best = {search}[0][0]")
            add("tokens += best.tokens")
        else:
            prompts = "[[*prompt, *tokens]]"
            add(
                f"    tokens += generate_tokens(model, {prompts}, sampling=sampling, "
                f"seed={asked.seed}, {how})[0]"
            )
    add(f"print({decoded})")
    program.lines += [
        f"# the choices of token {asked.at}: by the model, and after the settings",
        f"with torch.no_grad(){under}:",
        f"    logits = model({inputs})[0, len(prompt) - 1 + {asked.at}].float()",
        "before = logits.softmax(-1)",
        f"allowed = exclude_tokens(logits[None], model.special.never{forbidden})",
        "after = adjust(allowed, sampling)[0].softmax(-1)",
        "for token in before.topk(10).indices.tolist():",
        "    piece = model.tokenizer.decode([token])",
        "    print(token, repr(piece), float(before[token]), float(after[token]))",
    ]
    return {"lines": str(program)}


def _write_sampling(asked: WriteLinesRequest) -> str:
    given = {"temperature": asked.temperature, "top_k": asked.top_k, "top_p": asked.top_p}
    return ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
