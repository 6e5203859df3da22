"""The ledger of verdicts: one line of JSON for each run of a row, in `artifacts/ledger.jsonl` of the repository.

`python -m harness.ledger` prints the rows with more than two inconclusive runs among their last twenty. Such a row proves too
little for its time: make it a fact, or put it on the soak list by a reviewed commit. Runs beside a load on purpose belong in
another ledger: `NAGARE_LEDGER=FILE ops/test interop`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

from .machine import Starvation

REPOSITORY = Path(__file__).resolve().parents[3]
LEDGER = Path(os.environ.get("NAGARE_LEDGER", REPOSITORY / "artifacts/ledger.jsonl"))
RUNS_KEPT, INCONCLUSIVE_MAX = 20, 2


class Session:
    """Appends the rows of one session."""

    def __init__(self, path: Path = LEDGER) -> None:
        self.path = path
        self.commit = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=False
        ).stdout.strip()

    def append(self, row: str, attempt: int, verdict: str, reason: str, starvation: Starvation) -> None:
        """Appends a run. Attempts after the first are those of an inconclusive row at the end of the session."""
        line = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "commit": self.commit,
            "row": row,
            "attempt": attempt,
            "verdict": verdict,
            "seconds": round(starvation.seconds, 2),
            "steal": round(starvation.steal, 4),
            "pressure": round(starvation.pressure, 3),
            "waited": round(starvation.waited, 3),
            "worst": round(starvation.worst, 3),
            **({"reason": reason} if reason else {}),
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # One write: sessions side by side append whole lines.
        with self.path.open("a") as output:
            output.write(json.dumps(line) + "\n")


def unsteady(lines: list[dict]) -> dict[str, list[dict]]:
    """The inconclusive runs of rows that have more than two among their last twenty first runs."""
    runs: dict[str, list[dict]] = defaultdict(list)
    for line in lines:
        if line["attempt"] == 1:
            runs[line["row"]].append(line)
    found = {
        row: [one for one in of_row[-RUNS_KEPT:] if one["verdict"] == "inconclusive"] for row, of_row in runs.items()
    }
    return {row: of_row for row, of_row in found.items() if len(of_row) > INCONCLUSIVE_MAX}


def main() -> int:
    if not LEDGER.is_file():
        print(f"There is no ledger at {LEDGER}: run the interop layer first.", file=sys.stderr)
        return 2
    lines = [json.loads(line) for line in LEDGER.read_text().splitlines()]
    found = unsteady(lines)
    for row, runs in sorted(found.items()):
        print(f"{row}: {len(runs)} of the last {RUNS_KEPT} runs were inconclusive")
        for one in runs:
            print(f"    {one['at']}  steal {one['steal']:.1%}  waited {one['waited']:.0%}  {one.get('reason', '')}")
    print(f"{len(lines)} runs, {len({line['row'] for line in lines})} rows, {len(found)} of them unsteady")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
