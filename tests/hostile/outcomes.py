"""How many attempts are made, and whether one ends in the right result or in a clear error."""

import faulthandler
import os
import re
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

# How many times as many attempts as in `make test` are made, with new seeds.
TIMES = int(os.environ.get("BNMF_HOSTILE", "1"))
# Seconds after which an attempt counts as hanging: its process ends, with a traceback of all threads.
SECONDS_PER_ATTEMPT = 180


def is_right(attempt: Callable[[], Any], what: str, kinds: tuple[type[BaseException], ...], words: str) -> bool:
    """Return True if an attempt succeeds, and False after an error of `kinds` whose message matches `words`."""
    faulthandler.dump_traceback_later(SECONDS_PER_ATTEMPT, exit=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", category=RuntimeWarning)  # of NumPy, which tell a user nothing
            attempt()
    except BaseException as error:
        if isinstance(error, kinds) and re.search(words, str(error)):
            return False
        error.add_note(what)
        raise
    finally:
        faulthandler.cancel_dump_traceback_later()
    return True


def count_right(attempt: Callable[[int, np.random.Generator], bool], n: int) -> float:
    """Return the part of `TIMES` n numbered attempts that had the right result."""
    first = 0 if TIMES == 1 else int(time.time())
    found = [attempt(number, np.random.default_rng(number)) for number in range(first, first + n * TIMES)]
    return sum(found) / len(found)
