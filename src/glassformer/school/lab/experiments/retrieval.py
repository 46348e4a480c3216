"""Sentence embeddings: what masked tokens teach, what pairs teach, and what negatives decide."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.models import Config, Encoder, Positions
from glassformer.models.config import Output, Pooling
from glassformer.render.chart import Axis, Bars, Chart, Lines, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import mean_loss, warmup_cosine
from glassformer.training import clip_gradients
from glassformer.training.loss import IGNORED


class _Size(NamedTuple):
    steps: int  # of each training


_SIZES = {"quick": _Size(120), "full": _Size(300)}
_NOUNS, _VERBS, _SYNONYMS = 16, 8, 2
_CLS, _MASK, _VOICES, _FIRST_WORD = 0, 1, 2, 4  # active and passive are the tokens 2 and 3
_VOCABULARY = _FIRST_WORD + _SYNONYMS * (_NOUNS + _VERBS)
_LENGTH = 5  # [CLS] noun voice verb noun
_USUAL = 0.7  # how often a subject does what it usually does, and to what it usually does it
_DIM, _HEADS, _LAYERS = 64, 4, 1
_BATCH, _CANDIDATES = 64, 256
_TEMPERATURE = 0.05
_RATE, _WARMUP = 3e-3, 30
_PLACES = 10  # of the training at which recall is measured
_EARLY = 3  # of these places: when pairs must have reached what masked tokens reach at the end
# Trained on masked tokens, or on pairs: the pooling, and what the negatives are.
WAYS: dict[str, tuple[Pooling, str]] = {
    "masked": ("mean", "none"),
    "mean": ("mean", "random"),
    "first": ("first", "random"),
    "chance": ("mean", "chance"),
    "hard": ("mean", "hard"),
}


class _World:
    """Events (subject, verb, object), some usual and some not; each word has a synonym."""

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(1000 + seed)
        nouns, verbs = torch.arange(_NOUNS), torch.arange(_VERBS)
        every = torch.cartesian_prod(nouns, verbs, nouns)
        self.events = every[every[:, 0] != every[:, 2]]
        does = torch.randint(_VERBS, (_NOUNS,), generator=generator)
        partner = torch.randperm(_NOUNS, generator=generator)
        subject, verb, thing = self.events.T
        usual_verb = torch.where(verb == does[subject], _USUAL, (1 - _USUAL) / (_VERBS - 1))
        usual_object = torch.where(thing == partner[subject], _USUAL, (1 - _USUAL) / (_NOUNS - 2))
        self.weights = usual_verb * usual_object
        self.held_out = torch.randperm(len(self.events), generator=generator)[:_CANDIDATES]
        self.weights[self.held_out] = 0.0

    def best_without_roles(self) -> float:
        """The recall of a model that knows every word and no role: two events look the same to it.

        Where the event with the roles exchanged is a candidate too, it is right half of the time.
        """
        tests = self.events[self.held_out]
        exchanged = (tests[:, None] == tests.flip(1)[None]).all(-1).any(1)
        return 1 - float(exchanged.float().mean()) / 2

    def draw(self, generator: torch.Generator, *, reversed_too: bool) -> Tensor:
        """Different events, none held out; `reversed_too`: also two with their roles exchanged.

        Otherwise a new order of all nouns is drawn, in which each subject precedes its object.
        """
        order = torch.rand(_NOUNS, generator=generator)
        precedes = order[self.events[:, 0]] < order[self.events[:, 2]]
        weights = self.weights if reversed_too else self.weights * precedes
        return self.events[torch.multinomial(weights, _BATCH, generator=generator)]


def _choose_words(events: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randint(_SYNONYMS, events.shape, generator=generator)


def _write(events: Tensor, synonyms: Tensor, generator: torch.Generator) -> Tensor:
    """Sentences, half of them passive: the voice says which of the nouns is the subject."""
    starts = torch.tensor([0, _SYNONYMS * _NOUNS, 0]) + _FIRST_WORD
    words = starts + _SYNONYMS * events + synonyms
    passive = torch.randint(2, (len(events), 1), generator=generator)
    first = torch.where(passive > 0, words[:, 2:], words[:, :1])
    last = torch.where(passive > 0, words[:, :1], words[:, 2:])
    begin = torch.full_like(passive, _CLS)
    return torch.cat([begin, first, _VOICES + passive, words[:, 1:2], last], dim=1)


def _write_pairs(events: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """A sentence, a paraphrase without a common word, and the same with the roles exchanged."""
    synonyms = _choose_words(events, generator)
    other = 1 - synonyms
    return (
        _write(events, synonyms, generator),
        _write(events, other, generator),
        _write(events.flip(1), other.flip(1), generator),
    )


def info_nce(queries: Tensor, candidates: Tensor) -> Tensor:
    """The cross-entropy of finding candidate i for query i, from unit vectors."""
    scores = queries @ candidates.T / _TEMPERATURE
    return F.cross_entropy(scores, torch.arange(len(queries)))


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Encoders that start alike; what each finds among sentences it was not trained on."""
    (steps,) = _SIZES[size]
    world = _World(seed)
    untrained = _build(seed)
    numbers: Numbers = {
        "places": list(range(0, steps + 1, steps // _PLACES)),
        "recall": {"untrained": _recall(untrained, world, seed)},
        "roles": {"untrained": _roles(untrained, world, seed)},
        "curves": {},
        "guessing": 1 / _CANDIDATES,
        "blind": world.best_without_roles(),
    }
    for name, own in iterate_with_progress(list(WAYS), progress, numbers):
        pooling, negatives = WAYS[name]
        model = _build(seed, pooling)
        numbers["curves"][name] = [_recall(model, world, seed)]
        _train(model, world, negatives, steps, seed, numbers["curves"][name], own)
        numbers["recall"][name] = numbers["curves"][name][-1]
        numbers["roles"][name] = _roles(model, world, seed)
        if name == "masked":
            first = _build(seed, "first")
            first.load_state_dict(model.state_dict())
            numbers["recall"]["masked_first"] = _recall(first, world, seed)
            numbers["roles"]["masked_first"] = _roles(first, world, seed)
    return numbers


def _build(seed: int, pooling: Pooling = "mean") -> Encoder:
    torch.manual_seed(seed)
    return Encoder(
        Config(
            family="encoder",
            vocab_size=_VOCABULARY,
            dim=_DIM,
            n_layers=_LAYERS,
            n_heads=_HEADS,
            hidden_dim=2 * _DIM,
            max_len=_LENGTH,
            positions=Positions(kind="learned"),
            output=Output(pooling=pooling),
        )
    )


def _masked_loss(model: Encoder, events: Tensor, generator: torch.Generator) -> Tensor:
    """One word of each sentence is masked, and asked for; never [CLS] or the voice."""
    tokens = _write(events, _choose_words(events, generator), generator)
    places = torch.tensor([1, 3, 4])[torch.randint(3, (len(tokens), 1), generator=generator)]
    targets = torch.full_like(tokens, IGNORED).scatter(1, places, tokens.gather(1, places))
    return mean_loss(model.fill(model(tokens.scatter(1, places, _MASK))), targets)


def _pair_loss(model: Encoder, events: Tensor, generator: torch.Generator, *, hard: bool) -> Tensor:
    """InfoNCE in both directions; the other pairs of the batch are the negatives.

    Hard negatives are added to them: of each event, the sentence with the roles exchanged.
    """
    texts = _write_pairs(events, generator)[: 3 if hard else 2]
    vectors = model.embed(torch.cat(texts))
    queries, candidates = vectors[:_BATCH], vectors[_BATCH:]
    return (info_nce(queries, candidates) + info_nce(candidates[:_BATCH], queries)) / 2


def _train(
    model: Encoder,
    world: _World,
    negatives: str,
    steps: int,
    seed: int,
    curve: list[float],
    progress: ProgressCallback,
) -> None:
    """Train, and append the recall at ten places to `curve`."""
    generator = torch.Generator().manual_seed(seed)
    schedule = warmup_cosine(_RATE, steps, warmup=_WARMUP)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), fused=True)
    for step in range(steps):
        events = world.draw(generator, reversed_too=negatives in ("none", "chance"))
        if negatives == "none":
            loss = _masked_loss(model, events, generator)
        else:
            loss = _pair_loss(model, events, generator, hard=negatives == "hard")
        optimizer.zero_grad()
        loss.backward()
        clip_gradients(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate(step)
        optimizer.step()
        if (step + 1) % (steps // _PLACES) == 0:
            curve.append(_recall(model, world, seed))
        progress((step + 1) / steps)


def _embed_tests(model: Encoder, world: _World, seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(2000 + seed)
    texts = _write_pairs(world.events[world.held_out], generator)
    with torch.no_grad():
        return [model.embed(text) for text in texts]


def _recall(model: Encoder, world: _World, seed: int) -> float:
    """How often the paraphrase is the nearest of all candidates."""
    one, other, _ = _embed_tests(model, world, seed)
    found = (one @ other.T).argmax(1)
    return float((found == torch.arange(_CANDIDATES)).float().mean())


def _roles(model: Encoder, world: _World, seed: int) -> float:
    """How often the paraphrase is nearer than the sentence with the roles exchanged."""
    one, other, swapped = _embed_tests(model, world, seed)
    return float(((one * other).sum(1) > (one * swapped).sum(1)).float().mean())


def judge(numbers: Numbers) -> Verdict:
    recall, roles, curves = numbers["recall"], numbers["roles"], numbers["curves"]
    random = {name: roles[name] for name in ("masked", "mean", "first")}
    return Verdict.of(
        Check(
            "negatives",
            max(random.values()) < 0.75 and roles["hard"] > 0.9,
            {**random, "hard": roles["hard"]},
        ),
        Check(
            "pairs",
            recall["untrained"] < 0.1
            and recall["mean"] > 0.8
            and curves["mean"][_EARLY] > recall["masked"],
            {
                "untrained": recall["untrained"],
                "mean": recall["mean"],
                "early": curves["mean"][_EARLY],
                "masked": recall["masked"],
            },
        ),
        Check(
            "pooling",
            abs(recall["first"] - recall["mean"]) < 0.1,
            {"mean": recall["mean"], "first": recall["first"]},
        ),
        Check(
            "ceiling",
            recall["mean"] < numbers["blind"] + 0.03 < recall["hard"],
            {"mean": recall["mean"], "blind": numbers["blind"], "hard": recall["hard"]},
        ),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    places = numbers["places"]
    curves = Lines(
        title=texts("curves"),
        x=Axis(label=texts("step")),
        y=Axis(label=texts("recall_axis"), least=0.0, most=1.0),
        places=tuple(places),
        series=tuple(
            Series(name=texts(name), values=tuple(_padded(found, len(places))))
            for name, found in numbers["curves"].items()
        ),
        marks=(Mark(name=texts("blind"), at=numbers["blind"]),),
    )
    return Chart(
        (
            curves,
            _bars("recall", numbers["recall"], numbers["guessing"], texts),
            _bars("roles", numbers["roles"], 0.5, texts),
        )
    )


def _padded(values: list[float], n: int) -> list[Any]:
    return [*values, *([None] * (n - len(values)))]


def _bars(title: str, found: dict[str, float], chance: float, texts: ExperimentTexts) -> Bars:
    return Bars(
        title=texts(title),
        y=Axis(label=texts(f"{title}_axis"), least=0.0, most=1.0),
        names=tuple(texts(name) for name in found),
        series=(Series(name=texts(f"{title}_axis"), values=tuple(found.values())),),
        marks=(Mark(name=texts("guessing"), at=chance),),
    )


EXPERIMENT = Experiment(
    name="retrieval",
    look_at=(
        "models/encoder.py:Encoder",
        "generation/encoder_tasks.py:embed",
        "school/lab/experiments/retrieval.py:info_nce",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
