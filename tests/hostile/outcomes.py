"""What an attempt ended in: the right result, a clear error, or something bad."""

import re
import traceback
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

RIGHT, CLEAR, BAD = "right", "clear error", "bad"


class Outcome(NamedTuple):
    """How an attempt ended, and what was attempted."""

    kind: str
    what: str


class Wrong(Exception):
    """A result that is not what it has to be."""


def require(condition: Any, words: str) -> None:
    """Raise `Wrong` unless a condition holds; unlike `assert` it cannot be taken for an error of the package."""
    if not condition:
        raise Wrong(words)


def judged(attempt: Callable[[], Any], what: str, kinds: tuple[type[BaseException], ...], words: str) -> Outcome:
    """Run an attempt, which returns if its result is right and raises `Wrong` if it is not, and judge its end.

    An error is clear if it is of one of `kinds` and its message holds the regular expression `words`.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", category=RuntimeWarning)  # of NumPy, which tell a user nothing
            attempt()
    except kinds as error:
        if re.search(words, str(error)):
            return Outcome(CLEAR, what)
        return Outcome(BAD, f"{what}: unclear {type(error).__name__}: {error}")
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(BAD, f"{what}: {type(error).__name__}: {str(error)[:500]} ({place.filename}:{place.lineno})")
    return Outcome(RIGHT, what)
