# mistake: expects the outputs to depend on the order of the tokens.
answer = "a"
