"""The oldest versions that pyproject.toml allows, as constraints for pip: python -m tests.oldest > constraints.

Standard library only: it runs in an environment where nothing is installed yet.
"""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[\w-]+)>=(?P<oldest>[\d.]+)(,<(?P<limit>[\d.]+))?")


def bounds():
    """Return the lower bound, and the upper bound or None, of every dependency that has bounds, by name."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    found = [REQUIREMENT.fullmatch(requirement) for requirement in sum(extras, project["dependencies"])]
    return {match["name"]: (match["oldest"], match["limit"]) for match in found if match}


if __name__ == "__main__":
    for name, (oldest, _) in bounds().items():
        print(f"{name}=={oldest}")
