"""The capstone: a learner's own files, joined into one model that runs the shipped weights.

Reading order: parts (which exercises a model is joined from), lending (what stands in for a part
that is not written yet), kit (activations of the library's model, as files), joining (parts and
weights become a model), translator_cases, decoder_cases, kit_cases (each part on those
activations), bundle (all files as one program); recording, weight_names, library_run (the library's
model, which is what counts as right); capstone_report, assembly (one run), capstone_texts, screen
(what a learner reads). What comes before recording is loaded where learners' code runs, so it holds
no attention of ours.
"""
