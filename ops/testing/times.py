"""Where the time of a run of ops/test went: times.py RESULTS SECONDS. Prints the layers, and writes them with the slowest rows of
each to RESULTS/times.md."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

ROWS_MAX = 10


def rows(results: Path, layer: str) -> list[tuple[float, str]]:
    """The rows of a layer with their seconds, the slowest first."""
    found: list[tuple[float, str]] = []
    for report in results.glob(f"{layer}*.xml"):
        for case in ElementTree.parse(report).iter("testcase"):
            found.append((float(case.get("time", "0")), f"{case.get('classname', '').split('.')[-1]} {case.get('name')}"))
    log = results / f"{layer}.log"
    text = log.read_text(errors="replace") if log.exists() else ""
    pattern = r'^[✔✘] Test "?(.*?)"?(?: with \d+ test cases?)? (?:passed|failed) after ([\d.]+) s'
    # Tests of Swift run beside each other, so that their seconds have those of others in them.
    for name, seconds in re.findall(pattern, text, re.M):
        if not name.startswith("run with "):
            found.append((float(seconds), name))
    return sorted(found, reverse=True)


def main() -> None:
    results, total = Path(sys.argv[1]), int(sys.argv[2])
    lines = [line.split("\t") for line in (results / "times.tsv").read_text().splitlines()]
    text = "| layer | verdict | passed | failed | seconds |\n| --- | --- | ---: | ---: | ---: |\n"
    for name, seconds, verdict, passed, failed in lines:
        print(f"{name:24} {verdict:7} {passed:>5} passed {failed:>4} failed {seconds:>6} s")
        text += f"| {name} | {verdict} | {passed} | {failed} | {seconds} |\n"
    print(f"{'all':24} {total:38d} s")
    text += f"| all | | | | {total} |\n"
    for name, *_ in lines:
        slowest = rows(results, name)[:ROWS_MAX]
        if slowest:
            text += f"\n## The slowest rows of {name}\n\n| seconds | row |\n| ---: | --- |\n"
            text += "".join(f"| {seconds:.1f} | {row.replace('|', '&#124;')} |\n" for seconds, row in slowest)
    (results / "times.md").write_text(f"# Where the time went\n\n{text}")


if __name__ == "__main__":
    main()
