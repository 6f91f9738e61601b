"""Client of the worker processes: starts them, sends requests, and stops those that crash or time out."""

import json
import queue
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.environment import ROOT, python, source_of, variables


class PeerError(Exception):
    """A worker failed, crashed or timed out."""


@dataclass(frozen=True)
class Contestant:
    """One implementation on one matrix."""

    label: str  # name in the tables
    peer: str  # key of benchmarks.peers.PEERS
    data: str
    rank: int
    threads: int = 1
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    processor: str = "native"  # key of benchmarks.environment.PROCESSORS
    version: str | None = None  # commit of bnmf, this version by default


class Client:
    """The workers of a section, started on first use: one process per peer, threads, processor and version."""

    def __init__(self, directory: Path, data_dir: Path, timeout: float) -> None:
        self.directory, self.data_dir, self.timeout = directory, data_dir, timeout
        self._workers: dict[tuple[str, int, str, str | None], _Worker] = {}

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        for worker in self._workers.values():
            worker.end()

    def set_up(self, contestant: Contestant) -> None:
        """Load the data and run the burn-in of a contestant; it takes the place of an earlier one with its label."""
        c = contestant
        self._ask(c, {"do": "set up", "peer": c.peer, "data": c.data, "rank": c.rank, "options": c.options})

    def repeat(self, contestant: Contestant, n: int) -> dict[str, Any]:
        """Time n iterations."""
        return self._ask(contestant, {"do": "repeat", "n": n})

    def _ask(self, contestant: Contestant, request: dict[str, Any]) -> dict[str, Any]:
        key = contestant.peer, contestant.threads, contestant.processor, contestant.version
        if key not in self._workers:
            self._workers[key] = _Worker(self.directory, self.data_dir, *key)
        try:
            answer = self._workers[key].ask({**request, "label": contestant.label}, self.timeout)
        except PeerError:
            self._workers.pop(key).end()
            raise
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer


class _Worker:
    """One worker process."""

    def __init__(
        self, directory: Path, data_dir: Path, peer: str, threads: int, processor: str, version: str | None
    ) -> None:
        self._log = directory / f"{peer}-{threads}-{processor}-{version}.log"
        own = {"BNMF_DATA": str(data_dir)}
        if version:
            compiled = directory / f"compiled-{processor}"
            own |= {"PYTHONPATH": str(source_of(version, directory)), "NUMBA_CACHE_DIR": str(compiled)}
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [python(), "-m", "benchmarks.worker", str(directory), str(threads)],
                cwd=ROOT,
                env=variables(threads, processor) | own,
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
            print(json.dumps(request), file=self._process.stdin, flush=True)
            line = self._answers.get(timeout=timeout)
        except queue.Empty:
            raise PeerError(f"no answer within {timeout:g} s") from None
        except OSError:
            line = ""
        if not line:
            last = self._log.read_text().strip().splitlines()[-1:]
            raise PeerError(f"its process ended: {''.join(last) or 'no message'}")
        return json.loads(line)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._listener.join()
        self._process.stdin.close()
        self._process.stdout.close()
