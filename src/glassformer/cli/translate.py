"""`glassformer translate`: an encoder reads a text, a decoder writes another."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from glassformer.cli import model_options
from glassformer.cli.help import Command
from glassformer.cli.progress import progress_bar
from glassformer.cli.readability import is_readable
from glassformer.cli.terminal import complain, terminal
from glassformer.errors import ConfigError
from glassformer.languages import Language

TOGETHER = {"cpu": 256, "cuda": 2048}  # texts that are read before the first is written


def add(app: typer.Typer, language: Language) -> None:
    """Declare the command."""
    say = language.say

    @app.command("translate", cls=Command, help=say("translate.help"))
    def translate(
        texts: Annotated[
            list[str] | None, typer.Argument(metavar="[TEXT]…", help=say("translate.text"))
        ] = None,
        model: Annotated[
            str | None, model_options.model_option(language, default="translator")
        ] = None,
        to: Annotated[
            str | None, typer.Option("--to", metavar="zh|fr", help=say("translate.to"))
        ] = None,
        beams: Annotated[
            int, typer.Option("--beams", metavar="N", help=say("translate.beams"))
        ] = 4,
        n_best: Annotated[
            int, typer.Option("--n-best", metavar="N", help=say("translate.nbest"))
        ] = 1,
        length_penalty: Annotated[
            float, typer.Option("--length-penalty", metavar="A", help=say("translate.penalty"))
        ] = 1.0,
        max_new: Annotated[
            int | None, typer.Option("--max-new", metavar="N", help=say("generate.maxnew"))
        ] = None,
        is_unrestricted: Annotated[
            bool, typer.Option("--unrestricted", help=say("translate.unrestricted"))
        ] = False,
        has_shortlist: Annotated[
            bool, typer.Option("--shortlist", help=say("translate.shortlist"))
        ] = False,
        device: Annotated[str | None, model_options.device_option(language)] = None,
        dtype: Annotated[str | None, model_options.dtype_option(language)] = None,
        as_json: Annotated[bool, model_options.json_option(language)] = False,
    ) -> None:
        model_options.compile_ahead(device)
        # Imported here: help screens and usage errors must not load torch.
        from glassformer.generation import rank_translations
        from glassformer.generation.beam import check_beams
        from glassformer.generation.prompts import check_max_new_tokens

        check_beams(beams, n_best)
        check_max_new_tokens(max_new)
        sources = model_options.texts_or_lines(texts, language)
        if not any(text.strip() for text in sources):
            raise ConfigError(say("saved.error.text"))
        loaded = model_options.load_model(model, device, dtype, language, default="translator")
        console = terminal()
        unreadable = [text for text in sources if not is_readable(loaded, text)]
        if len(unreadable) == len(sources):
            raise ConfigError(say("translate.error.unreadable", got=repr(sources[0][:60])))
        for text in unreadable:  # the other lines are translated, each on its own line
            complain(ConfigError(say("translate.error.unreadable", got=repr(text[:60]))))
        device_type = next(loaded.parameters()).device.type
        together = TOGETHER.get(device_type, TOGETHER["cpu"])
        for start in range(0, len(sources), together):
            batch = sources[start : start + together]
            readable = [text for text in batch if text not in unreadable]
            # Gone before the results are printed, which may be to the same terminal.
            with _progress(start, len(sources), language) as progress:
                translated = rank_translations(
                    loaded,  # type: ignore[arg-type]  # other models are refused by name
                    readable,
                    to=to,
                    beams=beams,
                    n_best=n_best,
                    length_penalty=length_penalty,
                    max_new_tokens=max_new,
                    restricted=not is_unrestricted,
                    shortlist=has_shortlist,
                    progress=progress,
                )
            answers = iter(translated)
            for source in batch:
                best = [] if source in unreadable else next(answers)
                if as_json:
                    line = {"source": source, "translations": [asdict(each) for each in best]}
                    typer.echo(json.dumps(line, ensure_ascii=False))
                    continue
                if not best:
                    console.print()
                elif best[0].copied:
                    spans = ", ".join(map(repr, best[0].copied))
                    complain(say("translate.copied", spans=spans))
                for each in best:
                    score = Text(f"{each.score:8.3f}  ", style="dim") if n_best > 1 else Text()
                    console.print(score + Text(each.text), soft_wrap=True)


@contextmanager
def _progress(start: int, total: int, language: Language) -> Iterator[Callable[[int], None]]:
    """How many of all texts are translated; for a single one, only whether kernels are compiled."""
    from glassformer.compilation import notice_compilation

    if total == 1:
        label = language.say("generate.compiling")
        with notice_compilation(lambda: progress_bar(label, total=None)):
            yield lambda _: None
        return
    label = language.say("translate.running")
    with progress_bar(label, total=total, done=start, is_counted=True) as show:
        yield lambda n: show(start + n)
