"""Results as JSON, as Markdown and on the terminal."""

import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from benchmarks import pages
from benchmarks.matrices import describe
from benchmarks.sections import AVX2, COMMON_NOISE, HALF_NORMAL, NUMBA, OURS
from benchmarks.settings import Settings
from benchmarks.spread import Spread, ratios, spread
from benchmarks.targets import Target, targets

TARGET_HEADER = ["quantity", "measured (10-90% of repeats)", "required", "goal", "met?"]
SECTION_HEADER = ["data", "implementation", "measured", "ratio"]
Table = list[list[str]]


def machine(versions: dict[str, str]) -> dict[str, Any]:
    """Return the hardware and software versions that timings depend on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions,
    }


def load_average() -> float | None:
    """Return the load average of the last minute. Above the number of cores, timings are unreliable."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def target_table(sections: dict[str, Any], settings: Settings) -> Table:
    """Return the table of targets."""
    return [_target_line(target, target.measured(sections)) for target in targets(settings)]


def _target_line(target: Target, found: Spread | None) -> list[str]:
    def bound(value: float | None) -> str:
        if value is None:
            return ""
        return f"{'≤' if target.smaller_is_better else '≥'} {value:g}{target.unit}"

    shown = "" if found is None else with_range(found, target.unit)
    return [target.quantity, shown, bound(target.bound), bound(target.goal), target.verdict(found)]


def with_range(found: Spread, unit: str = "") -> str:
    """Return a median and its range as text, without the range if all values are equal."""
    if found.low == found.high:
        return f"{found.median:.3g}{unit}"
    return f"{found.median:.3g}{unit} ({found.low:.3g}-{found.high:.3g})"


def section_table(rows: list[dict[str, Any]]) -> Table:
    """Return the table of one section."""
    return [[_where(row), row["label"], _amount(row), _comparison(row, rows)] for row in rows]


def _where(row: dict[str, Any]) -> str:
    if not row["data"]:
        return ""
    threads = f", {row['threads']} threads" if row["threads"] > 1 else ""
    return f"{describe(row['data'])}, K = {row['rank']}{threads}"


def _amount(row: dict[str, Any]) -> str:
    found = spread(row["values"])
    if not row["unit"].startswith("s"):
        return f"{with_range(found)} {row['unit']}"
    unit, factor = ("ms", 1e3) if found.median < 1 else ("s", 1.0)
    return with_range(Spread(*(value * factor for value in found))) + " " + row["unit"].replace("s", unit, 1)


def _comparison(row: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """Return the ratio to the baseline, preferring a baseline with the same number of threads."""
    same = [r for r in rows if r["label"] == row["baseline"] and (r["data"], r["rank"]) == (row["data"], row["rank"])]
    same.sort(key=lambda r: r["threads"] != row["threads"])
    values = ratios(row["values"], same[0]["values"]) if same else []
    return f"{with_range(spread(values), 'x')} of {row['baseline']}" if values else ""


def markdown(results: dict[str, Any], settings: Settings) -> str:
    """Return the results as a Markdown page."""
    facts = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    parts = [
        "# Benchmarks",
        f"{facts['processor']}, {facts['cores']} cores, {facts['system']}, Python {facts['python']}; {versions}.",
        "One thread unless stated, double precision, all implementations measured in turn. Numbers are medians over "
        "the repeats with the 10% and 90% quantiles in parentheses; ratios are computed within each repeat. A sweep of "
        "bnmf draws every entry once and rescales the components; effective samples are those of the default moves.",
    ]
    if settings.name != "full":
        parts.append(f"This is a {settings.name} run, with fewer repeats and smaller data than the full one.")
    table = pages.table(TARGET_HEADER, target_table(results["sections"], settings))
    parts += ["<!-- targets -->", table, "<!-- /targets -->"]
    if "sweeps" in results["sections"]:
        parts += ["<!-- sweeps -->", sweeps_table(results["sections"]["sweeps"]["rows"]), "<!-- /sweeps -->"]
    for name, section in results["sections"].items():
        before = f", load average before the run {section['load']:.1f}" if section.get("load") is not None else ""
        processor = section.get("processor", facts["processor"])
        where = "" if processor == facts["processor"] else f" on {processor}"
        parts += [f"## {name}", f"Measured on {section['date']}{where} in {section['seconds']:.0f} s{before}."]
        if section["rows"]:
            parts.append(pages.table(SECTION_HEADER, section_table(section["rows"])))
        parts += ["\n".join(f"- {note}" for note in section["notes"] + not_measured(section))]
    return "\n\n".join(part for part in parts if part) + "\n"


def sweeps_table(rows: list[dict[str, Any]]) -> str:
    """Return the fastest sweeps of both versions on both processors, and ratios of priors and noise models."""
    fastest = {(row["data"], row["rank"], row["label"]): min(filter(None, row["values"])) for row in rows}

    def ratio(case: tuple[str, int], label: str, other: str) -> str:
        found, baseline = fastest.get((*case, label)), fastest.get((*case, other))
        return f"{found / baseline:.2f}" if found and baseline else ""

    def microseconds(case: tuple[str, int], label: str) -> str:
        return f"{fastest[*case, label] * 1e6:,.0f}" if (*case, label) in fastest else ""

    header = ["matrix", "K", "bnmf, µs", "bnmf / Numba", "AVX2: bnmf, µs", "AVX2: bnmf / Numba", "AVX2 / native"]
    lines = []
    for case in dict.fromkeys(key[:2] for key in fastest if key[2] == OURS):
        native = [microseconds(case, OURS), ratio(case, OURS, NUMBA)]
        older = [
            microseconds(case, OURS + AVX2),
            ratio(case, OURS + AVX2, NUMBA + AVX2),
            ratio(case, OURS + AVX2, OURS),
        ]
        lines.append([describe(case[0]), str(case[1]), *native, *older])
    others = [(row["label"], row["baseline"]) for row in rows if row["baseline"] in (COMMON_NOISE, HALF_NORMAL)]
    ratios_on_gdsc = [[f"{label} / {other}", ratio(("gdsc", 20), label, other)] for label, other in others]
    second = pages.table(["GDSC, K = 20: time of a sweep", "ratio"], ratios_on_gdsc)
    return pages.table(header, lines) + f"\n\n{second}"


def not_measured(section: dict[str, Any]) -> list[str]:
    """Return a line with the reason for each implementation that is not in the table."""
    lines = []
    for failure in section["failures"]:
        where = f" on {describe(failure['data'])}, K = {failure['rank']}" if "data" in failure else ""
        lines.append(f"Not measured: {failure['label']}{where}: {failure['reason']}")
    return list(dict.fromkeys(lines))


def save(results: dict[str, Any], settings: Settings, directory: Path) -> None:
    """Save the results as JSON and Markdown."""
    directory.mkdir(exist_ok=True)
    name = "results" if settings.name == "full" else f"results-{settings.name}"
    (directory / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (directory / f"{name}.md").write_text(markdown(results, settings), encoding="utf-8")


def load(settings: Settings, directory: Path) -> dict[str, Any]:
    """Return the results of an earlier run, or empty results if there was none."""
    name = "results" if settings.name == "full" else f"results-{settings.name}"
    path = directory / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"sections": {}}


def show(results: dict[str, Any], settings: Settings) -> None:
    """Print the tables."""
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console() if sys.stdout.isatty() else Console(width=150)

    def put(title: str, header: list[str], lines: Table) -> None:
        shown = RichTable(*header, title=title, title_justify="left")
        for line in lines:
            shown.add_row(*line)
        console.print(shown)

    for name, section in results["sections"].items():
        put(name, SECTION_HEADER, section_table(section["rows"]))
        for line in section["notes"] + not_measured(section):
            console.print(line, markup=False)
    put("Targets", TARGET_HEADER, target_table(results["sections"], settings))
