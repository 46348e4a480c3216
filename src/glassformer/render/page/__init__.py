"""One offline HTML page of a trace; static/ holds its program, built from web/."""
