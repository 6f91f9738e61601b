"""The pages of the documentation, taken apart: links, headings, blocks of code and commands."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
MADE_BY_THE_BUILD = ("_build", "_generated", "gallery")


def pages_of_the_site():
    """Return the Markdown pages in docs."""
    found = (path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] not in MADE_BY_THE_BUILD)
    return sorted(found)


def all_pages():
    """Return the pages of the site and those in the root of the repository."""
    return [*sorted(ROOT.glob("*.md")), *pages_of_the_site()]


def name_of(page):
    """Return the path of a page from the root: the name of its tests."""
    return page.relative_to(ROOT).as_posix()


def blocks(text, language):
    """Return the blocks of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def without_code(text):
    """Return a page without its code, in which brackets are no links and lines with # no headings."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "code", text)


def links(text):
    """Return the targets of links and pictures, as pairs of a path and an anchor."""
    found = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", without_code(text))
    return [(path, anchor) for path, anchor in found if "://" not in path]


def anchors(text):
    """Return the anchors of all headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def toctree():
    """Return the pages that the start page lists, without their endings."""
    listed = "\n".join(blocks((DOCS / "index.md").read_text(encoding="utf-8"), r"\{toctree\}"))
    lines = (line for line in listed.splitlines() if line and not line.startswith(":"))
    return [re.sub(r".*<(.*)>", r"\1", line) for line in lines]


def commands(text):
    """Return what a page tells to type: in blocks for a shell, in indented blocks and within sentences."""
    shell = "".join(blocks(text, "sh")).splitlines()
    shell += re.findall(r"^\$ (.*)$", "".join(blocks(text, "console")), re.MULTILINE)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    indented = re.findall(r"^    ((?:make|bnmf|python|pip) .*)$", prose, re.MULTILINE)
    inline = re.findall(r"`((?:make|bnmf|python) [^`\n]*)`", prose)
    return [line.split("#")[0].strip() for line in [*shell, *indented, *inline]]
