"""vLLM, watched from inside: a plug-in that listens to its attention backends.

Reading order: version (which releases were tested), plugin and backends (how vLLM comes to call
us), worker (recording inside a worker), watched_model (its layers and heads), recorder,
packed_batch, layer_groups and paged_cache (what is kept of a step), served_requests and request_run
(a run for each request), obstacles (what is refused, and why), watching (`gf.watch(llm)`). For
requests that ask: request_options and request_desk; for a server: endpoint, request_tracing and
statistics_report. vLLM is imported only where it is running already.
"""
