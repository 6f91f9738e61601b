"""Settings of the documentation: `make docs` builds it, without a network.

Pages are Markdown; the API reference is made from docstrings, and the gallery by running the scripts in examples/.
"""

import inspect
import os
from pathlib import Path

import bnmf

ROOT = Path(__file__).parent.parent
# Real data next to the repository, if there are any. The examples say which data they show.
if "BNMF_DATA" not in os.environ and (ROOT.parent / "shared" / "data").exists():
    os.environ["BNMF_DATA"] = str(ROOT.parent / "shared" / "data")

project = "bnmf"
author = "the authors of bnmf"
release = version = bnmf.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "sg_execution_times.rst", "gallery/sg_execution_times.rst"]
templates_path = ["_templates"]

# Headings get the same anchors as on GitHub, so that links work in both places.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc describes the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template lists them

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "ExampleTitleSortKey",
    "abort_on_example_error": True,
    "capture_repr": (),
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "min_reported_time": 10_000,
    "remove_config_comments": True,
}

html_theme = "furo"
html_title = f"bnmf {release}"
html_static_path = ["_static"]
html_css_files = ["bnmf.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False


def skip_internal(app, what, name, obj, skip, options):
    """Leave out methods with one sentence of docstring: they are public to the package, and not to its users."""
    is_described = any(f"{part}\n---" in (inspect.getdoc(obj) or "") for part in ("Parameters", "Returns"))
    return True if inspect.isroutine(obj) and not is_described else None


def keep_together(app, docname, source):
    """Let no line end between a number and its deviation."""
    source[0] = source[0].replace(" ± ", "\u00a0±\u00a0")


def setup(app):
    app.connect("source-read", keep_together)
    app.connect("autodoc-skip-member", skip_internal)
