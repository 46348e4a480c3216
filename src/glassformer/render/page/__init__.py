"""A trace as one offline HTML page; static/ holds its program, built from web/."""
