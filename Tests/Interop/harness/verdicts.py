"""Judges rows by evidence: a plugin of pytest.

A row that breaks a fact is failed, always. A row that misses a clock (`harness.clocks`, or a time limit of a library) is
failed when the machine was within the limits of `harness.machine`, and inconclusive otherwise. Inconclusive rows run again by
themselves at the end, after a wait for a quiet machine, at most three times: two passes make the row passed; a broken
fact, a clock that was missed on a quiet machine, or no two passes make it failed. Each run is a line of the ledger
(`harness.ledger`).

A clock may bring evidence of its own, of the interval that it judges: a program of the row that waited longer than the bound
has room for, or a generator whose own timers were late. That evidence decides in place of the whole row's, both ways.

Rows that a reviewed commit put on the soak list (`@pytest.mark.soak("reason")`) are left out, and run with `--soak TIMES`
only, which prints how often each one passed.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from dataclasses import dataclass, field
from typing import Iterator

import httpx
import playwright.sync_api
import pytest
from _pytest.runner import runtestprotocol

from . import ledger
from .clocks import ClockMissed
from .machine import Starvation, StarvationMeter, await_quiet

# Errors of libraries that say only that time ran out.
TIME_LIMITS = (
    TimeoutError,
    asyncio.TimeoutError,
    subprocess.TimeoutExpired,
    httpx.TimeoutException,
    playwright.sync_api.TimeoutError,
)
RUNS_MAX, PASSES_NEEDED = 3, 2
# How long one run waits for a quiet machine, and all of a session together.
QUIET_SECONDS_MAX, QUIET_SECONDS_TOTAL = 60.0, 600.0


@dataclass
class Run:
    """One run of a row: its verdict, how starved the machine was, and why it did not pass."""

    verdict: str = "passed"
    starvation: Starvation = field(default_factory=Starvation)
    reason: str = ""
    text: str = ""

    def __str__(self) -> str:
        return f"{self.verdict} ({self.starvation}) {self.reason}".rstrip()


def settled(runs: list[Run]) -> bool | None:
    """Whether a row that was inconclusive has passed by its later runs; None while another run has to tell."""
    if any(one.verdict == "failed" for one in runs):
        return False
    # What held on a starved machine held. An attacker without a processor does not pass: each attack has a `LEAST`.
    if sum(one.verdict == "passed" for one in runs) >= PASSES_NEEDED:
        return True
    return False if len(runs) >= RUNS_MAX else None


def is_out_of_time(error: BaseException) -> bool:
    """Whether an error says only that time ran out. The time limit of a whole row (pytest-timeout) fails it by an outcome."""
    if isinstance(error, pytest.fail.Exception):
        return "from pytest-timeout" in str(error)
    return isinstance(error, (ClockMissed, *TIME_LIMITS))


def judge(error: BaseException, starvation: Starvation) -> str:
    """The verdict on a row that raised an error."""
    if isinstance(error, BaseExceptionGroup):
        return "failed" if "failed" in [judge(one, starvation) for one in error.exceptions] else "inconclusive"
    if not is_out_of_time(error):
        return "failed"
    # The error of a fixture is raised again for each row that shares it: the row that ran it has the evidence.
    if getattr(error, "is_starved", None) is None:
        error.is_starved = not starvation.is_within_limits  # type: ignore[union-attr]
    return "inconclusive" if error.is_starved else "failed"  # type: ignore[union-attr]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", type=int, metavar="TIMES", help="run the rows of the soak list only, each so many times")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "soak(reason): a row of the soak list, which does not decide about a change")
    verdicts = Verdicts(config.getoption("--soak"))
    config.pluginmanager.register(verdicts)
    config.pluginmanager.register(Repetition(verdicts))


class Verdicts:
    """The verdicts of one session."""

    def __init__(self, soak: int | None) -> None:
        self.soak = soak
        self.meter: StarvationMeter | None = None
        self.run = Run()
        self.inconclusive: list[tuple[pytest.Item, Run]] = []
        self.soaked: dict[str, list[Run]] = {}
        # The reports of the row that is running again, which are not counted.
        self.repeated: list[pytest.TestReport] | None = None
        self.left_out = 0
        self.patience = QUIET_SECONDS_TOTAL
        self.session_of_ledger = ledger.Session()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [one for one in items if (one.get_closest_marker("soak") is not None) == bool(self.soak)]
        self.left_out = len(items) - len(chosen)
        items[:] = chosen

    def pytest_report_collectionfinish(self) -> str:
        return "" if self.soak else f"{self.left_out} rows are on the soak list: run them with ops/test soak."

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if self.repeated is not None:
            return (yield)
        self._begin()
        result = yield
        self._end(item, attempt=1)
        if self.run.verdict == "inconclusive":
            self.inconclusive.append((item, self.run))
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        report: pytest.TestReport = yield
        if report.failed and call.excinfo is not None and self.meter is not None:
            starvation = self.meter.read()
            verdict = judge(call.excinfo.value, starvation)
            if verdict == "failed" or self.run.verdict == "passed":
                self.run.verdict, self.run.text = verdict, report.longreprtext
                self.run.reason = (str(call.excinfo.value).splitlines() or [type(call.excinfo.value).__name__])[0][:300]
            if verdict == "inconclusive":
                report.sections.append(("starvation", str(starvation)))
                report.outcome = "inconclusive"
        return report

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        return ("inconclusive", "I", "INCONCLUSIVE") if report.outcome == "inconclusive" else None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Iterator[None]:
        result = yield
        if not session.shouldfail and not session.shouldstop:
            for item, first in self.inconclusive:
                self._settle(item, first)
        return result

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write = terminalreporter.write_line
        for item, first in self.inconclusive:
            write(f"inconclusive: {item.nodeid}: {first}")
        for row, runs in self.soaked.items():
            write(f"{sum(one.verdict == 'passed' for one in runs):3} of {len(runs)} passed  {row}")
            for one in runs:
                if one.verdict != "passed":
                    write(f"      {one}")

    def _begin(self) -> None:
        self.run = Run()
        self.meter = StarvationMeter()

    def _end(self, item: pytest.Item, attempt: int) -> None:
        self.run.starvation = self.meter.end()
        self.meter = None
        self.session_of_ledger.append(item.nodeid, attempt, self.run.verdict, self.run.reason, self.run.starvation)

    def repeat(self, item: pytest.Item, attempt: int) -> list[pytest.TestReport]:
        """Runs a row anew, with new fixtures of its own, and reports nothing."""
        item._initrequest()  # type: ignore[attr-defined]
        self._begin()
        self.repeated = []
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        reports, self.repeated = self.repeated, None
        self._end(item, attempt)
        return reports

    def _await_quiet(self) -> None:
        began = time.monotonic()
        await_quiet(min(QUIET_SECONDS_MAX, self.patience))
        self.patience = max(0.0, self.patience - (time.monotonic() - began))

    def _settle(self, item: pytest.Item, first: Run) -> None:
        """Runs an inconclusive row again until it is settled, and reports that as its last verdict."""
        runs: list[Run] = []
        reports: list[pytest.TestReport] = []
        while settled(runs) is None:
            self._await_quiet()
            reports = self.repeat(item, attempt=len(runs) + 2)
            runs.append(self.run)
        fault = None
        if not settled(runs):
            evidence = "\n".join(f"run {number}: {one}" for number, one in enumerate([first, *runs], 1))
            text = next((one.text for one in reversed(runs) if one.text), first.text)
            fault = f"{text}\n\nThe runs of the row:\n{evidence}"
        report_as(item, reports, fault)

    def soak_row(self, item: pytest.Item) -> None:
        """Runs a row of the soak list so many times. Only a broken fact, or a clock missed on a quiet machine, fails it."""
        runs = self.soaked[item.nodeid] = []
        reports: list[pytest.TestReport] = []
        for attempt in range(1, self.soak + 1):
            reports = self.repeat(item, attempt)
            runs.append(self.run)
        report_as(item, reports, next((one.text for one in runs if one.verdict == "failed"), None))


def report_as(item: pytest.Item, reports: list[pytest.TestReport], fault: str | None) -> None:
    """Reports a row that ran several times once: passed, or failed with the text of the fault."""
    final = next((one for one in reports if one.when == "call"), reports[0])
    final.outcome, final.longrepr = ("passed", None) if fault is None else ("failed", fault)
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    item.ihook.pytest_runtest_logreport(report=final)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


class Repetition:
    """Carries out what `Verdicts` repeats, inside of the hooks that other plugins wrap around a row, its time limit for one."""

    def __init__(self, verdicts: Verdicts) -> None:
        self.verdicts = verdicts

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if self.verdicts.repeated is None:
            return None
        self.verdicts.repeated = runtestprotocol(item, log=False, nextitem=None)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if not self.verdicts.soak or session.testsfailed or session.config.option.collectonly:
            return None
        for item in session.items:
            self.verdicts.soak_row(item)
        return True
