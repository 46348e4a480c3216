"""Sphinx settings; `docs/site/build.py` calls Sphinx once per language."""

import sys
from pathlib import Path

import glassformer

sys.path.insert(0, str(Path(__file__).parent))

project = "glassformer"
author = "The glassformer maintainers"
project_copyright = "The glassformer maintainers, Apache-2.0"
version = release = glassformer.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
extensions += ["landmarks", "mathml", "search"]  # ours
myst_enable_extensions = ["dollarmath", "attrs_inline"]
myst_heading_anchors = 3
default_role = "code"  # `x` in a docstring is code
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 88
nitpicky = False

html_theme = "furo"
html_title = "glassformer"
html_math_renderer = "mathml"
html_show_sphinx = False
html_copy_source = False
html_show_search_summary = False  # it would load every page that is found
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/scroll-start.html",
        "sidebar/brand.html",
        "sidebar/search.html",
        "language.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_static_path = ["static"]
html_css_files = ["pictures.css"]
html_js_files = [("scrolling.js", {"defer": "defer"})]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
