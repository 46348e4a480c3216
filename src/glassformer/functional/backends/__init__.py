"""Ways to compute attention, all with one signature and tested against the definition.

Each file has `refusal(q, k, v, scoring, dropout)`, which returns why it cannot compute a call (or
None), and `attend(q, k, v, scoring, dropout)`. They are independent, but that
`padded` computes by `sdpa`, and `native` (in C: native_attention.c) has the second derivatives of
`streaming`; dispatch.py chooses one.
"""
