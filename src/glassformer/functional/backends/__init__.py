"""Ways to compute attention, all of one signature and proved equal to the definition.

Each file has `refusal(q, k, v, scoring, dropout)`, why it cannot do what is asked or None, and
`attend(q, k, v, scoring, dropout)`. They know nothing of each other; dispatch.py chooses.
"""
