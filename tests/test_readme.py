"""What the README shows is true: its examples run, and its tables are those that commands made."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_examples_run():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 2
    assert names["model"].posterior_.summary().verdict.startswith("No sign of trouble")


def test_tables_are_those_that_commands_made():
    done = subprocess.run([sys.executable, ROOT / "docs" / "update_readme.py", "--check"], text=True, check=False)
    assert done.returncode == 0
