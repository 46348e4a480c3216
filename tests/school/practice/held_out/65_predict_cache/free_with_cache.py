# mistake: thinks that a step with a cache costs the same at any length.
answer = "e"
