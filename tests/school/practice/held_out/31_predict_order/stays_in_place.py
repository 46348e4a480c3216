# mistake: takes equivariance for invariance, as if outputs did not move with the tokens.
answer = "c"
