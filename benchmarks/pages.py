"""Tables in Markdown, and pages of the documentation that hold results between two marks."""

from collections.abc import Iterable, Sequence
from pathlib import Path


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def replaced(page: str, mark: str, text: str) -> str:
    """Return a page with a text between <!-- mark --> and <!-- /mark -->."""
    before, begin, rest = page.partition(f"<!-- {mark} -->")
    _, end, after = rest.partition(f"<!-- /{mark} -->")
    if not end:
        raise ValueError(f"the page has no marks <!-- {mark} --> and <!-- /{mark} -->")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def write(path: Path, **texts: str) -> None:
    """Replace texts of a page, each between the marks of its name."""
    page = path.read_text(encoding="utf-8")
    for mark, text in texts.items():
        page = replaced(page, mark, text)
    path.write_text(page, encoding="utf-8")
