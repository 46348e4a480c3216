"""The rooms of the workbench: one file for each, with a function for each of its jobs.

A job is `function(asked, memory, progress)`: what was asked (a request of `wire`), the models and
runs that this worker remembers, and a function that reports progress from 0 to 1 and stops the job
when nobody waits for it any more. It returns plain values in the form of its answer.
"""
