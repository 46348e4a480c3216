"""A page that lists what a learner's files prove when they are graded, and what is only recorded.

Reading order: proof, page. Builds on practice, learn, lab and the classroom's hashes.
"""
