# mistake: expects the weights to even out as the width grows.
answer = "c"
