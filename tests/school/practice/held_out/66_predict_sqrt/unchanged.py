# mistake: thinks that the gradient stays the same because the weights sum to 1.
answer = "b"
