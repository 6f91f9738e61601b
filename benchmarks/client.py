"""Client of the worker processes: starts them, sends requests, and stops those that crash or time out."""

import itertools
import json
import os
import queue
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import variants
from benchmarks.environment import ROOT, python, thread_variables


class PeerError(Exception):
    """A worker failed, crashed or timed out."""


class Key(NamedTuple):
    """What contestants of one worker process have in common; see `Contestant`."""

    peer: str
    threads: int
    processor: str
    version: str | None


@dataclass(frozen=True)
class Contestant:
    """One implementation on one matrix."""

    label: str  # name in the tables
    peer: str  # key of benchmarks.peers.PEERS
    data: str
    rank: int
    threads: int = 1
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    processor: str = "native"  # key of benchmarks.variants.PROCESSORS
    version: str | None = None  # commit of bnmf; this version by default

    @property
    def key(self) -> Key:
        return Key(self.peer, self.threads, self.processor, self.version)


class Client:
    """The workers of a run: one process per peer, number of threads, processor and version, started on first use."""

    def __init__(self, directory: Path, data_home: Path, timeout: float) -> None:
        self.directory = directory
        self.data_home = data_home
        self.timeout = timeout
        self._processes: dict[Key, _Process] = {}
        self._slots = itertools.count()

    def set_up(self, contestant: Contestant) -> int:
        """Load the data and run the burn-in of a contestant, and return the slot that identifies it."""
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
        """Create the data of a contestant in its worker process."""
        self._ask(contestant, {"do": "make", "data": contestant.data})

    def repeat(self, contestant: Contestant, slot: int, n: int) -> dict[str, Any]:
        """Time n iterations."""
        return self._ask(contestant, {"do": "repeat", "slot": slot, "n": n})

    def release(self) -> None:
        """Free the data and models held by the workers."""
        for key, process in list(self._processes.items()):
            try:
                process.ask({"do": "release"}, self.timeout)
            except PeerError:
                self._stop(key)

    def close(self) -> None:
        """Stop the workers."""
        for key in list(self._processes):
            self._stop(key)

    def _ask(self, contestant: Contestant, request: dict[str, Any]) -> dict[str, Any]:
        key = contestant.key
        try:
            if key not in self._processes:
                self._processes[key] = _Process(self.directory, self.data_home, key)
            answer = self._processes[key].ask(request, self.timeout)
        except variants.NotAvailable as error:
            raise PeerError(str(error)) from None
        except PeerError:
            self._stop(key)
            raise
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def _stop(self, key: Key) -> None:
        self._processes.pop(key).end()


class _Process:
    """One worker process."""

    def __init__(self, directory: Path, data_home: Path, key: Key) -> None:
        self._log = directory / ("-".join(map(str, key)) + ".log")
        environment = {**os.environ, **thread_variables(key.threads), "BNMF_DATA": str(data_home)}
        environment |= variants.variables(directory, key.processor, key.version)
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [python(), "-m", "benchmarks.worker", str(directory), str(key.threads)],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._answers: queue.Queue[str] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

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
            raise PeerError(f"its process ended: {self._last_log_line()}")
        return json.loads(line)

    def _last_log_line(self) -> str:
        lines = self._log.read_text().strip().splitlines()
        return lines[-1] if lines else "no message"

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._listener.join()
        self._process.stdin.close()
        self._process.stdout.close()
