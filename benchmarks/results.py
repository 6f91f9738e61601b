"""Results of a run as JSON and as Markdown."""

import json
import os
import platform
from pathlib import Path
from typing import Any

from benchmarks import pages
from benchmarks.environment import ROOT, versions
from benchmarks.matrices import describe
from benchmarks.sections import AVX2, COMMON_NOISE, HALF_NORMAL, NUMBA, OURS, SECTIONS, Settings
from benchmarks.targets import ratios, spread, targets

DIRECTORY = ROOT / "benchmarks" / "results"


def machine() -> dict[str, Any]:
    """Return the hardware and software versions that timings depend on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor() or "unknown",
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions(),
    }


def load(settings: Settings) -> dict[str, Any]:
    """Return the sections of an earlier run, with the processor of each; none if there was no run."""
    path = _path(settings, ".json")
    if not path.exists():
        return {}
    results = json.loads(path.read_text(encoding="utf-8"))
    processor = {"processor": results["machine"]["processor"]}
    return {name: processor | results["sections"][name] for name in SECTIONS if name in results["sections"]}


def save(results: dict[str, Any], settings: Settings) -> str:
    """Save the results as JSON and Markdown, and return the latter."""
    text = markdown(results, settings)
    DIRECTORY.mkdir(exist_ok=True)
    _path(settings, ".json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    _path(settings, ".md").write_text(text, encoding="utf-8")
    return text


def _path(settings: Settings, suffix: str) -> Path:
    name = "results" if settings.name == "full" else f"results-{settings.name}"
    return DIRECTORY / f"{name}{suffix}"


def markdown(results: dict[str, Any], settings: Settings) -> str:
    """Return the results as a Markdown page."""
    facts, sections = results["machine"], results["sections"]
    installed = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    parts = [
        "# Benchmarks",
        f"{facts['processor']}, {facts['cores']} cores, {facts['system']}, Python {facts['python']}; {installed}.",
        "One thread unless stated, double precision, all implementations measured in turn. Numbers are medians over "
        "the repeats with the 10% and 90% quantiles in parentheses; ratios are computed within each repeat. A sweep of "
        "bnmf draws every entry once and rescales the components; effective samples are those of the default moves.",
    ]
    if settings.name != "full":
        parts.append(f"This is a {settings.name} run, with fewer repeats and smaller data than the full one.")
    header = ["quantity", "measured (10-90% of repeats)", "required", "met?"]
    lines = [target.line(sections) for target in targets(settings)]
    parts += ["<!-- targets -->", pages.table(header, lines), "<!-- /targets -->"]
    if "sweeps" in sections:
        parts += ["<!-- sweeps -->", sweeps_table(sections["sweeps"]["rows"]), "<!-- /sweeps -->"]
    for name, section in sections.items():
        before = f", load average before the run {section['load']:.1f}" if section.get("load") is not None else ""
        where = "" if section["processor"] == facts["processor"] else f" on {section['processor']}"
        parts += [f"## {name}", f"Measured on {section['date']}{where} in {section['seconds']:.0f} s{before}."]
        if section["rows"]:
            header = ["data", "implementation", "measured", "ratio"]
            parts.append(pages.table(header, [_line(row, section["rows"]) for row in section["rows"]]))
        parts.append("\n".join(f"- {note}" for note in section["notes"] + not_measured(section)))
    return "\n\n".join(part for part in parts if part) + "\n"


def _line(row: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """Return where a row was measured, what it is of, its values, and their ratio to the baseline."""
    threads = f", {row['threads']} threads" if row["threads"] > 1 else ""
    where = f"{describe(row['data'])}, K = {row['rank']}{threads}" if row["data"] else ""
    found, unit = spread(row["values"]), f" {row['unit']}"
    if unit.startswith(" s") and found.median < 1:
        found, unit = spread(row["values"], 1e3), f" m{row['unit']}"
    # A baseline with the same number of threads is preferred.
    same = [r for r in rows if r["label"] == row["baseline"] and (r["data"], r["rank"]) == (row["data"], row["rank"])]
    same.sort(key=lambda r: r["threads"] != row["threads"])
    values = ratios(row["values"], same[0]["values"]) if same else []
    ratio = f"{spread(values).text('x')} of {row['baseline']}" if values else ""
    return [where, row["label"], found.text() + unit, ratio]


def sweeps_table(rows: list[dict[str, Any]]) -> str:
    """Return the fastest sweeps on both processors, beside Numba's, and ratios of priors and noise models."""
    fastest = {(row["data"], row["rank"], row["label"]): min(filter(None, row["values"])) for row in rows}
    lines = []
    for data, rank in dict.fromkeys(key[:2] for key in fastest if key[2] == OURS):
        cells = []
        for ending in ("", AVX2):
            ours, numba = (fastest.get((data, rank, label + ending)) for label in (OURS, f"{NUMBA}, Numba"))
            cells += [f"{ours * 1e6:,.0f}" if ours else "", f"{ours / numba:.2f}" if ours and numba else ""]
        lines.append([describe(data), str(rank), *cells])
    others = [
        [f"{row['label']} / {row['baseline']}", f"{fastest[key] / fastest[*key[:2], row['baseline']]:.2f}"]
        for row, key in zip(rows, fastest, strict=True)
        if row["baseline"] in (COMMON_NOISE, HALF_NORMAL)
    ]
    first = pages.table(["matrix", "K", "bnmf, µs", "bnmf / Numba", "AVX2: bnmf, µs", "AVX2: bnmf / Numba"], lines)
    return f"{first}\n\n{pages.table(['GDSC, K = 20: time of a sweep', 'ratio'], others)}"


def not_measured(section: dict[str, Any]) -> list[str]:
    """Return a line with the reason for each implementation that is not in the table."""
    lines = []
    for failure in section["failures"]:
        where = f" on {describe(failure['data'])}, K = {failure['rank']}" if "data" in failure else ""
        lines.append(f"Not measured: {failure['label']}{where}: {failure['reason']}")
    return list(dict.fromkeys(lines))
