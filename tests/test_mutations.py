"""The list of mutations follows the code; `make mutations` applies them."""

from pathlib import Path

import pytest

import bnmf
from tests.mutations import MUTATIONS, ROOT


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_mutation_can_be_applied(mutation):
    source = (Path(bnmf.__file__).parent / mutation.file).read_text(encoding="utf-8")
    assert source.count(mutation.right) == 1  # one line is broken, the one that is meant
    assert mutation.wrong != mutation.right
    path, _, function = mutation.test.partition("::")
    assert f"def {function.partition('[')[0]}" in (ROOT / path).read_text(encoding="utf-8")
