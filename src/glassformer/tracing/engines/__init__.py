"""Engines: programs that serve a model to many requests at once, watched while they serve.

engine (what `watch` takes for one); vllm/ (the plug-in for vLLM). An engine packs the tokens of
several requests into one call of attention, and keeps keys and values in pages. The operands are
kept as they were packed; a trace takes them apart, one run for each request.
"""
