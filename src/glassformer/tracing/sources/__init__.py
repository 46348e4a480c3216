"""Where operands come from: each source listens to one kind of model and calls the recorder.

ours; torch_modules; transformers, with its interface, call and layout; custom_attention,
operation_graph and operand_recovery for attention that a model writes out by itself.
"""
