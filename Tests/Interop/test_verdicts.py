"""Tests of the verdicts: facts always decide, clocks only where the machine was quiet."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from harness.clocks import ClockMissed
from harness.ledger import unsteady
from harness.machine import WAITED_SHARE_MAX, Starvation
from harness.ports import FIRST_PORT, LAST_PORT, claim, ephemeral_range, free_media_port, free_tcp_port
from harness.verdicts import Run, judge, settled

QUIET, STARVED = Starvation(1.0), Starvation(1.0, waited=WAITED_SHARE_MAX + 0.1)
HARNESS = Path(__file__).parent

pytest_plugins = ["pytester"]


@pytest.mark.parametrize(
    "error, quiet, starved",
    [
        (AssertionError("two packets lost"), "failed", "failed"),
        (KeyError("state"), "failed", "failed"),
        (ClockMissed("a freeze"), "failed", "inconclusive"),
        (pytest.fail.Exception("Timeout (>150.0s) from pytest-timeout."), "failed", "inconclusive"),
        (pytest.fail.Exception("FFmpeg could not publish"), "failed", "failed"),
        (TimeoutError(), "failed", "inconclusive"),
        (ClockMissed("a freeze that a wait explains", is_starved=True), "inconclusive", "inconclusive"),
        (ClockMissed("a freeze that no wait explains", is_starved=False), "failed", "failed"),
        (ExceptionGroup("both", [ClockMissed("late"), AssertionError("lost")]), "failed", "failed"),
    ],
)
def test_a_fact_decides_always_and_a_clock_where_the_machine_was_quiet(
    error: Exception, quiet: str, starved: str
) -> None:
    for starvation, verdict in ((QUIET, quiet), (STARVED, starved)):
        # The evidence of a clock is kept with it, for other rows that meet the same error.
        again = error if getattr(error, "is_starved", None) is not None else type(error)(*error.args)
        assert judge(again, starvation) == verdict


def test_the_evidence_of_a_shared_error_is_that_of_the_row_that_ran_it() -> None:
    error = ClockMissed("the node's readiness")
    assert judge(error, STARVED) == "inconclusive"
    assert judge(error, QUIET) == "inconclusive"


PASS, FAULT, UNSURE = Run(starvation=QUIET), Run("failed", QUIET), Run("inconclusive", STARVED)
STARVED_PASS = Run(starvation=STARVED)


@pytest.mark.parametrize(
    "runs, has_passed",
    [
        ([], None),
        ([PASS], None),
        ([PASS, PASS], True),
        ([FAULT], False),
        ([PASS, FAULT], False),
        ([UNSURE, PASS], None),
        ([UNSURE, PASS, PASS], True),
        ([PASS, STARVED_PASS], True),
        ([STARVED_PASS, UNSURE], None),
        ([STARVED_PASS, UNSURE, STARVED_PASS], True),
        ([STARVED_PASS, FAULT], False),
        ([UNSURE, PASS, UNSURE], False),
        ([UNSURE, UNSURE, UNSURE], False),
    ],
)
def test_two_passes_of_three_runs_settle_a_row(runs: list[Run], has_passed: bool | None) -> None:
    assert settled(runs) is has_passed


# Rows of a session of their own. `starved` says for each run of a row whether the machine was starved meanwhile.
ROWS = """
    import pytest
    from harness import machine, verdicts
    from harness.clocks import assert_clock

    runs = {}
    starvation = [machine.Starvation()]

    class Meter:
        def read(self):
            return starvation[0]

        def end(self):
            return starvation[0]

    verdicts.StarvationMeter = Meter
    verdicts.await_quiet = lambda seconds: True

    @pytest.fixture
    def run(request):
        name = request.node.name
        runs[name] = runs.get(name, 0) + 1
        starvation[0] = machine.Starvation(waited=1.0 if runs[name] in request.param else 0.0)
        return runs[name]

    def starved(*runs):
        return pytest.mark.parametrize("run", [runs], indirect=True)

    @starved()
    def test_good(run): pass

    @starved(1, 2, 3, 4)
    def test_fact(run): assert run == 0, "a packet was lost"

    @starved()
    def test_late_when_quiet(run): assert_clock(run > 1, "late")

    @starved(1)
    def test_late_when_starved(run): assert_clock(run > 1, "late")

    @starved(1)
    def test_fact_at_the_second_run(run):
        assert_clock(run > 1, "late")
        assert run != 3, "a packet was lost"

    @starved(1, 2, 3, 4)
    def test_always_starved(run): assert_clock(False, "late")

    @starved(1, 2, 3, 4)
    def test_always_starved_and_right_at_last(run): assert_clock(run > 1, "late")

    @pytest.mark.soak("a clock of another program")
    @starved()
    def test_on_the_soak_list(run): assert run != 2, "a packet was lost"
"""


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("NAGARE_LEDGER", str(pytester.path / "ledger.jsonl"))
    monkeypatch.setenv("PYTHONPATH", str(HARNESS))
    pytester.makeini("[pytest]\naddopts = -p harness.verdicts -p no:cacheprovider")
    pytester.makepyfile(test_rows=textwrap.dedent(ROWS))
    return pytester


def test_rows_are_settled_at_the_end_and_written_down(session: pytest.Pytester) -> None:
    result = session.runpytest_subprocess()
    result.stdout.fnmatch_lines(["*1 rows are on the soak list*", "*4 failed, 3 passed, 4 inconclusive in*"])
    assert result.ret == 1
    failed = [line for line in result.outlines if line.startswith("FAILED")]
    assert [line.split("::")[1].split("[")[0] for line in failed] == [
        "test_fact",
        "test_late_when_quiet",
        "test_fact_at_the_second_run",
        "test_always_starved",
    ]
    lines = [json.loads(line) for line in (session.path / "ledger.jsonl").read_text().splitlines()]
    verdicts = {}
    for line in lines:
        verdicts.setdefault(line["row"].split("::")[1].split("[")[0], []).append(line["verdict"])
    assert verdicts == {
        "test_good": ["passed"],
        "test_fact": ["failed"],
        "test_late_when_quiet": ["failed"],
        "test_late_when_starved": ["inconclusive", "passed", "passed"],
        "test_fact_at_the_second_run": ["inconclusive", "passed", "failed"],
        "test_always_starved": ["inconclusive"] * 4,
        "test_always_starved_and_right_at_last": ["inconclusive", "passed", "passed"],
    }


def test_the_soak_list_runs_as_often_as_one_says(session: pytest.Pytester) -> None:
    result = session.runpytest_subprocess("--soak", "3")
    result.stdout.fnmatch_lines(["*2 of 3 passed*test_on_the_soak_list*", "*failed (*a packet was lost*"])
    assert result.ret == 1
    lines = (session.path / "ledger.jsonl").read_text().splitlines()
    assert [json.loads(line)["verdict"] for line in lines] == ["passed", "failed", "passed"]


def test_rows_that_are_often_inconclusive_are_named() -> None:
    def runs(row: str, *verdicts: str) -> list[dict]:
        return [{"row": row, "attempt": 1, "verdict": verdict} for verdict in verdicts]

    steady = runs("steady", *["inconclusive"] * 3, *["passed"] * 20)
    unsure = runs("unsure", *["passed"] * 17, *["inconclusive"] * 3)
    repeated = [{"row": "repeated", "attempt": 2, "verdict": "inconclusive"}] * 5
    assert list(unsteady([*steady, *unsure, *repeated])) == ["unsure"]


def test_a_port_is_below_the_range_of_the_kernel_and_nobody_elses() -> None:
    assert LAST_PORT < ephemeral_range()[0], "the machine's own range of ports begins below the tests' ports"
    ports = [free_tcp_port() for _ in range(20)] + [free_media_port() for _ in range(20)]
    assert len(set(ports)) == len(ports)
    assert all(FIRST_PORT <= port <= LAST_PORT and not claim(port) for port in ports)
