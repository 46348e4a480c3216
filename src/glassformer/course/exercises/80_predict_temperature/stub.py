answer = ...  # "a", "b", "c", "d" or "e"
