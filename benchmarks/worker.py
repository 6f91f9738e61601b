"""Worker process of a peer: sets up models and answers each request with one timed repeat.

Requests and answers are lines of JSON. Anything that the libraries print goes to the log.
"""

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from benchmarks.matrices import load
from benchmarks.peers import find


def serve(directory: Path, n_threads: int) -> None:
    """Answer requests until the client closes the pipe."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    slots: dict[int, Any] = {}
    for line in sys.stdin:
        try:
            answer = _answer(json.loads(line), slots, directory, n_threads)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)


def _answer(request: dict[str, Any], slots: dict[int, Any], directory: Path, n_threads: int) -> dict[str, Any]:
    began = time.perf_counter()
    if request["do"] == "set up":
        peer = find(request["peer"])
        X = load(request["data"], directory)
        slots[request["slot"]] = peer(X, request["rank"], n_threads, **request["options"])
        answer: dict[str, Any] = {}
    elif request["do"] == "repeat":
        answer = slots[request["slot"]].measure(request["n"])
    elif request["do"] == "make":
        load(request["data"], directory)
        answer = {}
    else:
        slots.clear()
        answer = {}
    return {**answer, "elapsed": time.perf_counter() - began}


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
