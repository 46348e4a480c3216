"""Views as programs: the Python lines that reproduce what a room shows, and print its numbers.

`reading` writes what all of them begin with: load, run, record. Each other file is a room's. A
program names its results, so that whoever pastes it can go on from there.
"""
