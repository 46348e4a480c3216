"""The capstone: a learner's own files, joined into one model that runs the shipped weights.

Reading order: parts (which exercises a model is joined from), lending (what stands in for a part
that is not written yet), kit (activations of the library's model, as files), joining (parts and
weights become a model), translator_cases and decoder_cases (each part on those activations), bundle
(all files as one program), library_run (the library's model, which is what counts as right),
assembly (the whole run), report_texts and terminal (what a learner reads). What comes before
library_run is loaded where learners' code runs, so it holds no attention of ours.
"""
