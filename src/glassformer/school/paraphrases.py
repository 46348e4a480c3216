"""Sixteen sentences and their paraphrases, with few words in common: a small test of search.

They were written in the vocabulary of the books that the reader knows, and before any model had
been tried on them; none was exchanged afterwards.
"""

PARAPHRASES = (
    ("The king sat upon his throne.", "The monarch took his royal seat."),
    ("The ship sailed across the sea.", "A vessel crossed the ocean."),
    ("She was very angry with her sister.", "Her sister had made her furious."),
    ("The old man died in the night.", "Before morning the aged fellow had passed away."),
    ("They ate bread and meat for dinner.", "Their supper was a loaf and some beef."),
    ("The child began to weep.", "Tears ran down the face of the little boy."),
    ("He had no money left.", "His purse was empty."),
    ("The soldiers marched into battle.", "The army went to war."),
    ("It was raining hard all day.", "From morning till evening there was a heavy storm."),
    ("She wrote a letter to her friend.", "He received a note from Emma."),
    ("They were married in the church.", "The wedding was held before the priest."),
    ("The horse ran through the field.", "The mare galloped over the meadow."),
    ("He told her that he loved her.", "He declared his affection to the lady."),
    ("The house was large and handsome.", "It was a fine great building."),
    ("The sun rose over the hills.", "Day broke above the mountains."),
    ("The thief stole the gold.", "The robber carried off the treasure."),
)
