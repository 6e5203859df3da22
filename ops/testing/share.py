"""Shares files of tests between three processes: share.py RESULTS FILE... Prints a line of files for each.

Balances by the seconds of the last run, whose reports are RESULTS/pages-1.xml and so on, and without one by those below.
Rows with pictures stay in one process, so that no two of them share the processors. Two processes fill two processors: the third
has rows that wait.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

# Seconds on two idle cores.
SECONDS = {
    "test_cluster": 145, "test_cluster_crowd": 40, "test_cluster_network": 72, "test_cluster_redirects": 35,
    "test_cluster_store": 31, "test_data_channels": 110, "test_ffmpeg": 38, "test_harness": 23,
    "test_installation": 40, "test_lifecycle": 32, "test_module": 45, "test_module_channel": 34, "test_operators": 9,
    "test_operators_page": 18, "test_page": 100, "test_page_call": 60, "test_page_form": 90, "test_readme": 13,
    "test_relay": 32, "test_sora": 73, "test_sora_layers": 17, "test_turn": 53, "test_turn_client": 9,
}  # fmt: skip
SECONDS_OF_OTHERS = 5.0
# Files that stay together.
GROUPS = (
    (
        "test_installation", "test_module", "test_module_channel", "test_operators_page", "test_page", "test_page_call",
        "test_page_form",
    ),
)  # fmt: skip
WAITING = (
    "test_cluster_network", "test_cluster_redirects", "test_cluster_store", "test_consent", "test_data_channels",
    "test_lifecycle",
)  # fmt: skip


def last_run(results: Path) -> dict[str, float]:
    """The seconds of each file."""
    seconds: dict[str, float] = {}
    for report in results.glob("pages-[123].xml"):
        for case in ElementTree.parse(report).iter("testcase"):
            name = case.get("classname", "").split(".")[-1]
            seconds[name] = seconds.get(name, 0) + float(case.get("time", "0"))
    return seconds


def share(files: list[str], seconds: dict[str, float]) -> list[list[str]]:
    """The longest group goes first, each to the process with less to do."""
    waiting = [file for file in files if Path(file).stem in WAITING]
    groups: dict[object, list[str]] = {}
    for file in files:
        if file in waiting:
            continue
        stem = Path(file).stem
        key = next((group for group in GROUPS if stem in group), stem)
        groups.setdefault(key, []).append(file)

    def length(group: list[str]) -> float:
        return sum(seconds.get(Path(file).stem, SECONDS_OF_OTHERS) for file in group)

    shares: list[list[str]] = [[], []]
    for group in sorted(groups.values(), key=length, reverse=True):
        min(shares, key=length).extend(group)
    return [*shares, waiting]


def main() -> None:
    for one in share(sys.argv[2:], {**SECONDS, **last_run(Path(sys.argv[1]))}):
        print(*one)


if __name__ == "__main__":
    main()
