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
    models: dict[str, Any] = {}
    for line in sys.stdin:
        request, began = json.loads(line), time.perf_counter()
        answer: dict[str, Any] = {}
        try:
            if request["do"] == "set up":
                X = load(request["data"], directory)
                models[request["label"]] = find(request["peer"])(X, request["rank"], n_threads, **request["options"])
            else:
                answer = models[request["label"]].measure(request["n"])
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps({**answer, "elapsed": time.perf_counter() - began}), file=answers, flush=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
