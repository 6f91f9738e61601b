"""The other end of the workers: starts them, asks them, and buries those that die or hang."""

import itertools
import json
import os
import queue
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.environment import ROOT, python, thread_variables

# Peer, threads, and whether its thread pools are held.
Key = tuple[str, int, bool]


class PeerError(Exception):
    """A contestant could not do what it was asked."""


@dataclass(frozen=True)
class Contestant:
    """Who does what: a peer on a matrix."""

    who: str  # as the table names it
    peer: str  # as benchmarks.peers names it
    data: str
    rank: int
    threads: int = 1
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    held: bool = True  # thread pools held to `threads` from outside; if not, as a user's process starts


class Client:
    """The workers of a run, one process for each peer and number of threads, started when first asked."""

    def __init__(self, directory: Path, data_home: Path, timeout: float) -> None:
        self.directory = directory
        self.data_home = data_home
        self.timeout = timeout
        self._processes: dict[Key, _Process] = {}
        self._slots = itertools.count()

    def set_up(self, contestant: Contestant) -> int:
        """Prepare a contestant (data loaded, burn-in done) and return the number to ask it by."""
        slot = next(self._slots)
        self._ask(
            contestant,
            {
                "do": "set up",
                "slot": slot,
                "peer": contestant.peer,
                "data": contestant.data,
                "rank": contestant.rank,
                "options": contestant.options,
            },
        )
        return slot

    def make(self, contestant: Contestant) -> None:
        """Have a contestant's data made, and nothing else done."""
        self._ask(contestant, {"do": "make", "data": contestant.data})

    def repeat(self, contestant: Contestant, slot: int, n: int) -> dict[str, Any]:
        """Have n iterations timed."""
        return self._ask(contestant, {"do": "repeat", "slot": slot, "n": n})

    def release(self) -> None:
        """Have every worker forget what it holds."""
        for key, process in list(self._processes.items()):
            try:
                process.ask({"do": "release"}, self.timeout)
            except PeerError:
                self._bury(key)

    def close(self) -> None:
        """End the workers."""
        for key in list(self._processes):
            self._bury(key)

    def _ask(self, contestant: Contestant, request: dict[str, Any]) -> dict[str, Any]:
        key = contestant.peer, contestant.threads, contestant.held
        if key not in self._processes:
            self._processes[key] = _Process(self.directory, self.data_home, *key)
        try:
            answer = self._processes[key].ask(request, self.timeout)
        except PeerError:
            self._bury(key)
            raise
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def _bury(self, key: Key) -> None:
        self._processes.pop(key).end()


class _Process:
    """One worker."""

    def __init__(self, directory: Path, data_home: Path, peer: str, n_threads: int, held: bool) -> None:
        self._log = directory / f"{peer}-{n_threads}-{held}.log"
        variables = thread_variables(n_threads)
        environment = {name: value for name, value in os.environ.items() if name not in variables}
        environment |= {**(variables if held else {}), "BNMF_DATA": str(data_home)}
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [python(), "-m", "benchmarks.worker", str(directory), str(n_threads)],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=timeout)
        except queue.Empty:
            raise PeerError(f"no answer within {timeout:g} s") from None
        except OSError:
            line = ""
        if not line:
            raise PeerError(f"its process died: {self._last_words()}")
        return json.loads(line)

    def _last_words(self) -> str:
        lines = self._log.read_text().strip().splitlines()
        return lines[-1] if lines else "without a word"

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
