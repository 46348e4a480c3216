"""The mistakes of attention, for every exercise in which it occurs: softmax, scale, mask, heads.

They are found in the solution by its syntax, so that an exercise needs no list of its own.
"""

import ast
from collections.abc import Iterator

from glassformer.school.practice.report import Finding
from glassformer.school.practice.solution_edits import (
    DerivedFault,
    Edit,
    SolutionTree,
    call_name,
    receiver,
)

_TORCH = '__import__("torch")'
_INFINITY = 'float("-inf")'
_POWERS = {"2": "2", "3/2": "1.5", "1/3": "1 / 3", "1/4": "0.25"}


def derive_attention_faults(tree: SolutionTree) -> Iterator[DerivedFault]:
    """Every mistake of attention that the solution leaves room for."""
    softmaxes = [node for node in tree.expressions() if call_name(node) == "softmax"]
    scales = [node for node in tree.expressions() if _scale_of(node) is not None]
    for node in scales:
        yield from _derive_scale(tree, node, softmaxes)
    for node in softmaxes:
        yield from _derive_softmax(tree, node)
    for node in tree.expressions():
        if call_name(node) == "masked_fill":
            yield from _derive_mask(tree, node, softmaxes)
        yield from _derive_products(tree, node)
    yield from _derive_heads(tree)


def _fault(key: str, *edits: Edit, look: str, **values: str) -> DerivedFault:
    return DerivedFault(finding=Finding(key, values), edits=edits, look=look, common=True)


def _scale_of(node: ast.AST) -> ast.expr | None:
    """What the root is taken of, if a node is a division by a root."""
    match node:
        case ast.BinOp(op=ast.Div(), right=ast.Call(args=[inside]) as call):
            return inside if call_name(call) == "sqrt" else None
        case _:
            return None


def _derive_scale(
    tree: SolutionTree, node: ast.expr, softmaxes: list[ast.expr]
) -> Iterator[DerivedFault]:
    inside = _scale_of(node)
    assert isinstance(node, ast.BinOp) and inside is not None
    if not any(
        (isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult))
        or call_name(part) in ("einsum", "matmul", "bmm")
        for part in ast.walk(node.left)
    ):
        return
    scores, width = f"({tree.text(node.left)})", f"({tree.text(inside)})"
    look = r"sqrt|\*\*|/|scale"

    def instead(key: str, text: str, **values: str) -> DerivedFault:
        return _fault(key, tree.replace(node, f"({text})"), look=look, **values)

    unscaled = tree.replace(node, scores)
    yield _fault("practice.derived.scale.none", unscaled, look="@|matmul|einsum|bmm|dot")
    yield instead("practice.derived.scale.width", f"{scores} / {width}")
    yield instead("practice.derived.scale.times", f"{scores} * {width} ** 0.5")
    yield instead("practice.derived.scale.floor", f"{scores} // {width} ** 0.5")
    yield instead("practice.derived.scale.timeswidth", f"{scores} * {width}")
    for power, text in _POWERS.items():
        divided = f"{scores} / {width} ** ({text})"
        yield instead("practice.derived.scale.power", divided, power=power)
    yield instead("practice.derived.scale.double", f"{scores} / (2 * {width}) ** 0.5")
    yield instead("practice.derived.scale.half", f"{scores} / ({width} / 2) ** 0.5")
    for softmax in softmaxes:
        edits = (tree.replace(node, scores), _wrap(tree, softmax, f"({{}}) / {width} ** 0.5"))
        if not _is_inside(tree, node, softmax):
            yield _fault("practice.derived.scale.after", *edits, look=look)
    sizes = {
        size: f"scores_now.shape[{axis}]"
        for axis, size in ((-2, "queries"), (-1, "keys"), (0, "batch"), (1, "heads"))
    }
    for size, text in sizes.items():
        lambda_text = f"(lambda scores_now: scores_now / {text} ** 0.5)({scores})"
        key = {
            "queries": "practice.derived.scale.queries",
            "keys": "practice.derived.scale.keys",
            "batch": "practice.derived.scale.batch",
            "heads": "practice.derived.scale.heads",
        }[size]
        yield instead(key, lambda_text)
    match inside:
        case ast.Subscript(value=ast.Attribute(value=ast.Name(), attr="shape"), slice=index):
            for other in ("0", "1", "-2"):
                text = f"{scores} / ({tree.text(inside.value)}[{other}]) ** 0.5"
                if tree.text(index) != other:
                    size = f"{tree.text(inside.value)}[{other}]"
                    yield instead("practice.derived.scale.other", text, size=size)


def _wrap(tree: SolutionTree, node: ast.expr, form: str) -> Edit:
    return tree.replace(node, f"({form.format(tree.text(node))})")


def _is_inside(tree: SolutionTree, node: ast.AST, outer: ast.AST) -> bool:
    start, end = tree.span(node)
    first, last = tree.span(outer)
    return first <= start and end <= last


def _derive_softmax(tree: SolutionTree, node: ast.expr) -> Iterator[DerivedFault]:
    inner = receiver(node)
    if inner is None:
        return
    scores, whole = f"({tree.text(inner)})", tree.text(node)

    def instead(key: str, text: str, **values: str) -> DerivedFault:
        return _fault(key, tree.replace(node, f"({text})"), look="softmax|exp", **values)

    yield instead("practice.derived.softmax.queries", f"{scores}.softmax(-2)")
    yield instead("practice.derived.softmax.heads", f"{scores}.softmax(-3)")
    yield instead("practice.derived.softmax.batch", f"{scores}.softmax(0)")
    yield instead("practice.derived.softmax.first", f"{scores}.softmax(1)")
    yield instead("practice.derived.softmax.none", scores)
    yield instead("practice.derived.softmax.twice", f"({whole}).softmax(-1)")
    flat = "lambda s: s.flatten(-2).softmax(-1).view(s.shape)"
    yield instead("practice.derived.softmax.whole", f"({flat})({scores})")
    everything = "lambda s: s.flatten().softmax(-1).view(s.shape)"
    yield instead("practice.derived.softmax.all", f"({everything})({scores})")
    yield instead("practice.derived.softmax.negative", f"(-{scores}).softmax(-1)")
    yield instead("practice.derived.softmax.absolute", f"{scores}.abs().softmax(-1)")
    yield instead("practice.derived.softmax.log", f"{scores}.log_softmax(-1)")
    yield instead("practice.derived.softmax.sigmoid", f"{scores}.sigmoid()")
    yield instead("practice.derived.softmax.sum", f"{scores}.exp()")
    shifted = "lambda s: (s - s.amax(-1, keepdim=True)).exp()"
    yield instead("practice.derived.softmax.sum", f"({shifted})({scores})")
    hard = "lambda s: (s == s.amax(-1, keepdim=True)).to(s.dtype)"
    yield instead("practice.derived.softmax.hard", f"({hard})({scores})")
    share = "lambda s: s / s.sum(-1, keepdim=True)"
    yield instead("practice.derived.softmax.share", f"({share})({scores})")
    relu = "lambda s: s.relu() / s.relu().sum(-1, keepdim=True)"
    yield instead("practice.derived.softmax.relu", f"({relu})({scores})")
    norm = "lambda s: (lambda e: e / e.norm(dim=-1, keepdim=True))((s - s.amax(-1, True)).exp())"
    yield instead("practice.derived.softmax.norm", f"({norm})({scores})")
    yield instead("practice.derived.softmax.base", f"({scores} * 0.6931471805599453).softmax(-1)")
    yield instead("practice.derived.softmax.mean", f"({whole}) / ({whole}).shape[-1]")
    yield instead("practice.derived.softmax.detached", f"({whole}).detach()")
    uniform = "lambda s: s.new_ones(s.shape) / s.shape[-1]"
    yield instead("practice.derived.softmax.uniform", f"({uniform})({scores})")
    causal = f"{_TORCH}.ones(s.shape[-2:], dtype={_TORCH}.bool).tril(%s)"
    for key, diagonal in (
        ("practice.derived.mask.causal", "s.shape[-1] - s.shape[-2]"),
        ("practice.derived.mask.topleft", "0"),
        ("practice.derived.mask.strict", "-1"),
    ):
        hidden = f"(lambda s: s.masked_fill(~{causal % diagonal}, {_INFINITY}).softmax(-1))"
        yield instead(key, f"{hidden}({scores})")


def _derive_mask(
    tree: SolutionTree, node: ast.expr, softmaxes: list[ast.expr]
) -> Iterator[DerivedFault]:
    match node:
        case ast.Call(args=[hidden, value]):
            pass
        case _:
            return
    inner = receiver(node)
    if inner is None or "inf" not in tree.text(value):
        return
    scores, where, look = f"({tree.text(inner)})", f"({tree.text(hidden)})", "mask|fill|where|inf"

    def fill(key: str, number: str) -> DerivedFault:
        return _fault(key, tree.replace(value, number), look=look)

    yield _fault("practice.derived.mask.none", tree.replace(node, scores), look=look)
    inverted = tree.replace(hidden, f"~{where}")
    yield _fault("practice.derived.mask.inverted", inverted, look=look)
    yield fill("practice.derived.mask.zero", "0.0")
    yield fill("practice.derived.mask.positive", 'float("inf")')
    yield fill("practice.derived.mask.one", "1.0")
    yield fill("practice.derived.mask.minusone", "-1.0")
    yield fill("practice.derived.mask.large", "1e9")
    yield fill("practice.derived.mask.finite", "-1e9")
    yield fill("practice.derived.mask.finite", "-1e4")
    added = f"({scores} + {where}.to({scores}.dtype))"
    yield _fault("practice.derived.mask.added", tree.replace(node, added), look=look)
    allowed = f"({scores} + (~{where}).to({scores}.dtype))"
    yield _fault("practice.derived.mask.added", tree.replace(node, allowed), look=look)
    for form, key in (
        ("({{}}).masked_fill({}, 0.0)", "practice.derived.mask.after"),
        ("({{}}).masked_fill({}, float('-inf'))", "practice.derived.mask.afterinfinity"),
        (
            "(lambda w: w / w.sum(-1, keepdim=True))(({{}}).masked_fill({}, 0.0))",
            "practice.derived.mask.renormalized",
        ),
    ):
        for softmax in softmaxes:
            after = _wrap(tree, softmax, form.format(where.replace("{", "{{").replace("}", "}}")))
            if not _is_inside(tree, node, softmax):
                yield _fault(key, tree.replace(node, scores), after, look=look)


def _derive_products(tree: SolutionTree, node: ast.expr) -> Iterator[DerivedFault]:
    """q kᵀ: sides exchanged or doubled, turned, negative; and weights @ v."""
    match node:
        case ast.BinOp(left=left, op=ast.MatMult(), right=right):
            pass
        case _:
            return
    one, other = f"({tree.text(left)})", f"({tree.text(right)})"

    def instead(key: str, text: str, **values: str) -> DerivedFault:
        return _fault(
            key, tree.replace(node, f"({text})"), look="@|matmul|einsum|dot|bmm", **values
        )

    transposed = call_name(right) in ("transpose", "permute") or tree.text(right).endswith(".T")
    keys = receiver(right) if isinstance(right, ast.Call) else getattr(right, "value", None)
    if transposed and isinstance(keys, ast.expr):
        k = f"({tree.text(keys)})"
        yield instead("practice.derived.product.queries", f"{one} @ {one}.swapaxes(-2, -1)")
        yield instead("practice.derived.product.keys", f"{k} @ {k}.swapaxes(-2, -1)")
        yield instead("practice.derived.product.exchanged", f"{k} @ {one}.swapaxes(-2, -1)")
        yield instead("practice.derived.product.untransposed", f"{one} @ {k}")
        yield instead("practice.derived.product.absolute", f"abs({one} @ {other})")
        yield instead("practice.derived.product.negative", f"-({one} @ {other})")
        size = f"((({one})[..., :, None, :] - ({k})[..., None, :, :]) ** 2).sum(-1)"
        yield instead("practice.derived.product.distance", size)
        yield instead("practice.derived.product.distance", f"-{size}")
        cosine = (
            f"({one} / ({one} ** 2).sum(-1)[..., None] ** 0.5)"
            f" @ ({k} / ({k} ** 2).sum(-1)[..., None] ** 0.5).swapaxes(-2, -1)"
        )
        yield instead("practice.derived.product.cosine", cosine)
    elif not transposed:
        yield instead("practice.derived.product.turned", f"{one}.swapaxes(-2, -1) @ {other}")
        yield instead("practice.derived.product.mean", f"{one} @ {other} / {other}.shape[-2]")


def _derive_heads(tree: SolutionTree) -> Iterator[DerivedFault]:
    """Splitting and merging heads: view for transpose, and heads that take every H-th column."""
    look = "view|reshape|flatten|transpose|permute"
    interleaved: list[Edit] = []
    for node in tree.expressions():
        split = _split_of(tree, node)
        if split is not None:
            x, heads = split
            viewed = f"(lambda y, n: y.reshape(y.shape[0], n, y.shape[1], -1))(({x}), {heads})"
            yield _fault("practice.derived.heads.view", tree.replace(node, viewed), look=look)
            mixed = f"(lambda y, n: y.unflatten(-1, (-1, n)).movedim(-1, 1))(({x}), {heads})"
            interleaved.append(tree.replace(node, mixed))
            yield _fault("practice.derived.heads.interleaved", interleaved[-1], look=look)
        merged = _merge_of(tree, node)
        if merged is not None:
            viewed = f"(lambda y: y.reshape(y.shape[0], y.shape[2], -1))({merged})"
            yield _fault("practice.derived.heads.merge", tree.replace(node, viewed), look=look)
            mixed = f"(lambda y: y.permute(0, 2, 3, 1).flatten(2))({merged})"
            interleaved.append(tree.replace(node, mixed))
            yield _fault("practice.derived.heads.mixed", interleaved[-1], look=look)
            backwards = f"({merged}).flip(1).transpose(1, 2).flatten(2)"
            edit = tree.replace(node, backwards)
            yield _fault("practice.derived.heads.reversed", edit, look=look)
    if len(interleaved) > 1:
        yield _fault("practice.derived.heads.interleaved", *interleaved, look=look)


def _split_of(tree: SolutionTree, node: ast.expr) -> tuple[str, str] | None:
    """x and the number of heads, in x.unflatten(-1, (H, -1)).transpose(1, 2) and its likes."""
    if call_name(node) != "transpose" or not isinstance(node, ast.Call):
        return None
    if [tree.text(each) for each in node.args] != ["1", "2"]:
        return None
    match receiver(node):
        case ast.Call(func=ast.Attribute(value=x, attr="unflatten"), args=[_, sizes]):
            return tree.text(x), f"({tree.text(sizes)})[0]"
        case ast.Call(func=ast.Attribute(value=x, attr="view" | "reshape"), args=[_, _, heads, _]):
            return tree.text(x), tree.text(heads)
        case _:
            return None


def _merge_of(tree: SolutionTree, node: ast.expr) -> str | None:
    """out, in out.transpose(1, 2).flatten(2) and its likes."""
    if call_name(node) not in ("flatten", "reshape", "view"):
        return None
    match receiver(node):
        case ast.Call(func=ast.Attribute(value=out, attr="transpose"), args=[one, other]):
            is_merge = [tree.text(one), tree.text(other)] == ["1", "2"]
            return tree.text(out) if is_merge else None
        case _:
            return None
