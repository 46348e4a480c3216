"""Where operands come from: our own models, models of transformers, modules of PyTorch.

ours and ours_run; transformers, with its interface, call, layout, run and text; custom_attention,
operation_graph and operand_recovery for modules that compute attention themselves; site_steps
joins the calls of one site; torch_modules.
"""
