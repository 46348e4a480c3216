# mistake: thinks that −1e9 is added, so the differences of the scores survive.
answer = "c"
