"""The workbench: a local web application that shows, changes and explains models.

The server (`app`) answers requests and computes nothing itself; worker processes (`pool`) hold the
models and do the work (`desk`), so that no request can stop another, and one that dies is replaced.
"""
