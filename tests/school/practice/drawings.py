"""Right drawings of the flow in several hands."""

DRAWINGS = {
    "several nodes, chains": '''
def draw_attention():
    return """
    x → q, k, v
    q, k → scores → scale → mask → softmax → out
    v → out
    """
def draw_decoder_layer():
    return """
    x → self_attention, add_1
    self_attention → add_1 → norm_1 → cross_q, add_2
    context → cross_k, cross_v
    cross_q, cross_k, cross_v → cross_attention → add_2 → norm_2 → feed_forward, add_3
    feed_forward → add_3 → norm_3
    """
''',
    "from the output back": '''
def draw_attention():
    return """out <- softmax, v
softmax <-- mask <-- scale ← scores
scores ⟵ k, q
v <- x ;
k <= x
q <- x"""
def draw_decoder_layer():
    return """
norm_3 <- add_3
add_3 <- feed_forward + norm_2
feed_forward <- norm_2 <- add_2
add_2 <- cross_attention + norm_1
cross_attention <- cross_q + cross_k + cross_v
cross_q <- norm_1
cross_k + cross_v <- context
norm_1 <- add_1
add_1 <- self_attention + x
self_attention <- x
"""
''',
    "a list with comments, other capitals": '''
def draw_attention():
    # the paper's Figure 2
    return """
    # projections
    1. X -> Q
    2. X -> K      # by W_K
    3. X -> V
    4. [Q], [K] --> [Scores]

    - Scores=>Scale
    - scale=>MASK
    * Mask ⇒ Softmax
    • Softmax, V ⟶ Out.
    • softmax -> out     # twice is once
    """
def draw_decoder_layer():
    return """
    X -> Self-Attention -> Add 1 -> Norm 1
    X -> Add1
    Norm1 -> Cross Q
    Context -> Cross K 、 Cross V
    Cross Q，Cross K，Cross V -> Cross-Attention -> Add2 -> Norm2 -> Feed-Forward -> Add3 -> Norm3
    Norm1 -> Add2
    Norm2 -> Add3
    ...
    """
''',
    "written by a program": r"""
ATTENTION = {"q": "x", "k": "x", "v": "x", "scores": "qk", "scale": ["scores"], "mask": ["scale"],
             "softmax": ["mask"], "out": ["v", "softmax"]}
def draw_attention():
    return "\n".join(f"{a}->{b}" for b, sources in ATTENTION.items() for a in sources)
def draw_decoder_layer():
    lines, before = [], "x"
    for i, sublayer in enumerate(["self_attention", "cross_attention", "feed_forward"], start=1):
        first = "cross_q -> cross_attention" if i == 2 else sublayer
        lines += [f"{before} -> {first}", f"{before}, {sublayer} -> add_{i} -> norm_{i}"]
        before = f"norm_{i}"
    lines += [f"context -> cross_{kind} -> cross_attention" for kind in "kv"]
    return "\r\n".join(lines)
""",
}
