"""The bounds of pyproject.toml, which `make test-oldest` tests."""

import tomllib

from tests.oldest import PROJECT, bounds


def numbers(version):
    return [int(part) for part in version.split(".")]


def test_dependencies_have_lower_bounds():
    dependencies = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]
    assert [text for text in dependencies if text.split(">=")[0] not in bounds()] == []


def test_pinned_versions_are_allowed():
    lines = (PROJECT.parent / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines)
    for name, (oldest, limit) in bounds().items():
        assert numbers(oldest) <= numbers(pinned[name])
        assert limit is None or numbers(pinned[name]) < numbers(limit)
