"""What analysis found, as charts: plain values that terminal, figure and page draw alike.

One pure function per result, `chart_of_…(value, language)`: lens, attribution, sweep, flow and
change; `tree_of_why` makes a tree. `labels` holds what they share. Imports analysis, tracing and
languages.
"""
