"""Shares files of tests between two processes: share.py RESULTS FILE... Prints a line of files for each.

Balances by the seconds of the last run, whose reports are RESULTS/pages-1.xml and pages-2.xml, and without one by those below.
Rows with pictures stay in one process, so that no two of them share the processors.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

# Seconds on two idle cores.
SECONDS = {
    "test_http": 30, "test_package": 25, "test_container": 25, "test_readme": 40, "test_monitoring": 25, "test_operators": 20,
    "test_page": 80, "test_module": 60, "test_operators_page": 10, "test_installation": 20,
    "test_module_channel": 30, "test_cluster": 100, "test_cluster_network": 90, "test_cluster_crowd": 60,
    "test_cluster_store": 40, "test_data_channels": 60, "test_sora": 75, "test_harness": 30,
    "test_turn": 110, "test_relay": 50,
}  # fmt: skip
SECONDS_OF_OTHERS = 10.0
# Files that stay together. The last share the packages that the first of them builds.
GROUPS = (
    ("test_installation", "test_module", "test_module_channel", "test_operators_page", "test_page"),
    ("test_container", "test_package"),
)


def last_run(results: Path) -> dict[str, float]:
    """The seconds of each file."""
    seconds: dict[str, float] = {}
    for report in results.glob("pages-[12].xml"):
        for case in ElementTree.parse(report).iter("testcase"):
            name = case.get("classname", "").split(".")[-1]
            seconds[name] = seconds.get(name, 0) + float(case.get("time", "0"))
    return seconds


def share(files: list[str], seconds: dict[str, float]) -> list[list[str]]:
    """The longest group goes first, each to the process with less to do."""
    groups: dict[object, list[str]] = {}
    for file in files:
        stem = Path(file).stem
        key = next((group for group in GROUPS if stem in group), stem)
        groups.setdefault(key, []).append(file)

    def length(group: list[str]) -> float:
        return sum(seconds.get(Path(file).stem, SECONDS_OF_OTHERS) for file in group)

    shares: list[list[str]] = [[], []]
    for group in sorted(groups.values(), key=length, reverse=True):
        min(shares, key=length).extend(group)
    return shares


def main() -> None:
    for one in share(sys.argv[2:], {**SECONDS, **last_run(Path(sys.argv[1]))}):
        print(*one)


if __name__ == "__main__":
    main()
