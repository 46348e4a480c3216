answer = ...  # "a", "b", "c" or "d"
