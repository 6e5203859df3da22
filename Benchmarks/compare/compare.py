#!/usr/bin/env python3
"""Compares Nagare with Janus, a Pion forwarder and a bare loop (the floor), on this machine.

The servers run one after the other, for a number of rounds, and each gets the same load from `nagare load`. The floor has a
load generator of its own that sends the same media. The comparison is of the server process' CPU time per packet that
arrived at viewers, of the latency, and of losses.

`ops/bench` installs and builds what this needs, and then runs it.
"""

import argparse
import collections
import dataclasses
import json
import os
import platform
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

SCHEMA = "nagare-compare/1"
START_SECONDS = 30
STOP_SECONDS = 15
VIDEO_KBPS = 1500
FPS = 30
PORT = 18080
JOINS_A_SECOND = 50
# The viewers with limited links take this long to join and to find their rate.
LIMITED_SECONDS = 10
# A run in which other processes used more of a core than this is reported as unreliable.
FOREIGN_CORES_MAX = 0.1


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    publishers: int
    viewers: int
    audio: bool = False
    # The link of each viewer, and that of every second one; see nagare load --viewer-link.
    link: str = ""
    limited_link: str = ""
    # Measured only when it is named: more than some of the servers carry.
    is_large: bool = False


SCENARIOS = {
    scenario.name: scenario
    for scenario in [
        Scenario("v20", "1 → 20", 1, 20),
        Scenario("v50", "1 → 50", 1, 50),
        Scenario("v100", "1 → 100", 1, 100),
        Scenario("v200", "1 → 200", 1, 200),
        Scenario("v400", "1 → 400", 1, 400, is_large=True),
        Scenario("v1000", "1 → 1000", 1, 1000, is_large=True),
        # Five participants. Each publishes and watches the four others, with audio.
        Scenario("conference", "5 × 5", 5, 20, audio=True),
        # The floor has no links, and is left out.
        Scenario(
            "lossy", "1 → 50, 1 % loss, half at 1 Mbit/s", 1, 50, link="loss=1%,delay=20ms",
            limited_link="rate=1M,loss=1%,delay=20ms",
        ),
    ]
}
PROFILES = {"gcm": "AEAD_AES_128_GCM", "cm": "AES128_CM_HMAC_SHA1_80"}
TITLES = {
    "nagare": "Nagare",
    "nagare-2": "Nagare, two loops",
    "nagare-off": "Nagare, estimation off",
    "pion": "Pion",
    "janus": "Janus",
    "floor": "floor",
    "floor-mb": "floor, intel-ipsec-mb",
    "floor-plain": "floor without GSO",
}


class RunError(Exception):
    """A failed run."""


# MARK: The machine


def cpu_ns(pid):
    """CPU time of all threads of a process, including those that ended, by its CPU clock (clock_getcpuclockid(3))."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def thread_ns(pid):
    """CPU time of each running thread."""
    times = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            times[int(task)] = int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            continue
    return times


def resident_bytes(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def machine_busy_ns():
    """CPU time of all processes on this machine, and time stolen by the hypervisor."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    user, nice, system, _, _, irq, softirq, steal = fields[:8]
    return (user + nice + system + irq + softirq) * tick, steal * tick


def own_address():
    """The machine's first IPv4 address other than loopback, which Janus does not use."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Connecting a datagram socket sends nothing, and selects the route.
            probe.connect(("192.0.2.1", 9))
            address = probe.getsockname()[0]
        except OSError:
            address = "127.0.0.1"
    if address.startswith("127."):
        sys.exit("error: this machine has only loopback addresses, on which Janus receives no media. "
                 "Add another: ip link add bench type dummy && ip addr add 198.51.100.1/32 dev bench && "
                 "ip link set bench up; then --address 198.51.100.1")
    return address


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def describe_machine():
    model = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    packages = ["janus", "golang-github-pion-webrtc.v3-dev", "golang-go", "libssl3", "libsrtp2-1", "libipsec-mb1"]
    versions = {name: output("dpkg-query", "-W", "-f=${Version}", name) for name in packages}
    return {
        "cpu": model[1] if model else platform.machine(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "packages": {name: version for name, version in versions.items() if version},
        "commit": output("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"),
    }


# MARK: Servers


class Server:
    """A running server. `pid` is the process whose CPU time is measured. It need not be the one that was started."""

    def __init__(self, command, ready, url=None):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NAGARE_")}
        self.log = open(LOGS / "server.log", "wb")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.log, stdin=subprocess.DEVNULL, env=environment
        )
        self.pid = self.process.pid
        self.url = url
        try:
            ready(self)
        except BaseException:
            self.stop()
            raise

    def wait_for_line(self, pattern):
        """Waits for a line on standard output."""
        os.set_blocking(self.process.stdout.fileno(), False)
        deadline, seen = time.monotonic() + START_SECONDS, ""
        while time.monotonic() < deadline and self.process.poll() is None:
            seen += (self.process.stdout.read() or b"").decode()
            if match := re.search(pattern, seen):
                return match
            time.sleep(0.02)
        raise RunError(f"{self.process.args[0]} did not start; see {self.log.name}")

    def wait_for_port(self):
        host, port = self.url.rsplit("/", 1)[-1].rsplit(":", 1)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise RunError(f"{self.process.args[0]} did not start; see {self.log.name}")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        self.log.close()


def start_nagare(options, profile, loops, *arguments):
    del profile  # The clients offer one profile only.
    command = [
        options.nagare, "serve", "--http", f"{options.address}:{PORT}", "--media", f"{options.address}:{PORT + 2}",
        "--admin", f"127.0.0.1:{PORT + 1}", "--loops", str(loops), "--log-level", "error", "--grace", "1",
        *arguments, *options.nagare_argument,
    ]
    return Server(command, Server.wait_for_port, f"http://{options.address}:{PORT}")


def start_pion(options, profile):
    command = [str(options.tools / "pion"), "--address", options.address, "--port", str(PORT), "--srtp-profile", profile]
    return Server(command, Server.wait_for_port, f"http://{options.address}:{PORT}")


def start_janus(options, profile):
    del profile
    # The same Python as this script's: the one on the PATH may be a wrapper with another PID.
    command = [
        sys.executable, str(HERE / "janus" / "bridge.py"), "--address", options.address, "--port", str(PORT),
        "--api-port", str(PORT + 1), "--log", str(LOGS / "janus.log"),
    ]

    def ready(server):
        server.pid = int(server.wait_for_line(r"janus (\d+)\n")[1])

    return Server(command, ready, f"http://{options.address}:{PORT}")


FLOORS = {
    "floor": ["--send", "gso", "--crypto", "openssl"],
    "floor-mb": ["--send", "gso", "--crypto", "ipsec-mb"],
    "floor-plain": ["--send", "plain", "--crypto", "openssl"],
}


def floor_arguments(options, name, scenario, profile):
    arguments = [
        *FLOORS[name], "--profile", profile, "--address", options.address, "--port", str(PORT),
        "--streams", str(scenario.publishers), "--viewers", str(scenario.viewers),
        "--kbps", str(VIDEO_KBPS), "--fps", str(FPS),
    ]
    return arguments + (["--audio"] if scenario.audio else [])


def start(options, name, scenario, profile):
    if name in FLOORS:
        command = [str(options.tools / "floor"), "serve", *floor_arguments(options, name, scenario, profile)]
        return Server(command, lambda server: server.wait_for_line(r"ready\n"))
    return {
        "nagare": lambda: start_nagare(options, profile, 1),
        "nagare-2": lambda: start_nagare(options, profile, 2),
        "nagare-off": lambda: start_nagare(options, profile, 1, "--bandwidth-estimation", "off"),
        "pion": lambda: start_pion(options, profile),
        "janus": lambda: start_janus(options, profile),
    }[name]()


# MARK: The load


def load_command(options, name, server, scenario, profile, report, limited=False):
    """The command of a load generator. With limited links, half of the viewers have one of their own."""
    if name in FLOORS:
        return [
            str(options.tools / "floor"), "feed", *floor_arguments(options, name, scenario, profile),
            "--seconds", str(options.seconds),
        ]
    command = [
        options.load, "load", "--url", server.url, "--publishers", str(0 if limited else scenario.publishers),
        "--subscribers", str(scenario.viewers // 2 if scenario.limited_link else scenario.viewers),
        "--video-kbps", str(VIDEO_KBPS), "--fps", str(FPS),
        "--duration", str(options.seconds + (LIMITED_SECONDS if scenario.limited_link else 0)), "--join-rate", str(JOINS_A_SECOND),
        "--srtp-profile", profile, "--server-pid", str(server.pid), "--json", str(report),
    ]
    if scenario.audio:
        command.append("--audio")
    if link := scenario.limited_link if limited else scenario.link:
        command += ["--viewer-link", link]
    if scenario.publishers > 1 and not name.startswith("nagare"):
        # One publisher per channel, because viewers of these servers cannot select a participant.
        command += ["--whip-path", "/whip/{channel}-{publisher}", "--whep-path", "/whep/{channel}-{publisher}"]
    return command


PROGRESS = re.compile(
    rb"^(?:\d+) s  (\d+)/(\d+) connected .*?(\d+) packets/s(?:.*? latency p50 ([\d.]+) p99 ([\d.]+) ms)?", re.M
)


class Sample:
    """The CPU time of server, load generator and machine at the time of a progress line."""

    def __init__(self, server, generators, packets_a_second, latency):
        self.at = time.monotonic_ns()
        self.cpu = cpu_ns(server.pid)
        self.generator = sum(cpu_ns(generator.pid) for generator in generators)
        self.threads = thread_ns(server.pid)
        self.busy, self.stolen = machine_busy_ns()
        self.resident = resident_bytes(server.pid)
        self.packets_a_second = packets_a_second
        # p50 and p99 of the second before, in milliseconds; the floor's generator says none.
        self.latency = latency


class LimitedLoad:
    """A second load generator beside the first, with the viewers that have limited links."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        self.connected_at = None
        self.packets_a_second = 0
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            match = PROGRESS.match(line)
            if not match or match[1] != match[2]:
                continue
            self.connected_at = self.connected_at or time.monotonic()
            self.packets_a_second = int(match[3])

    @property
    def is_steady(self):
        is_running = self.process.poll() is None and self.connected_at is not None
        return is_running and time.monotonic() - self.connected_at > LIMITED_SECONDS / 2

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()


def watch_load(process, server, scenario, start_limited):
    """Takes a sample at each progress line, one a second, while all clients are connected."""
    # At least one packet per frame and viewer, to exclude seconds at the start and the end without full load.
    least = scenario.viewers * FPS // (2 if scenario.limited_link else 1)
    samples, seen, limited = [], b"", None
    try:
        for line in process.stderr:
            seen += line
            match = PROGRESS.match(line)
            if not match or match[1] != match[2] or int(match[3]) < least:
                continue
            latency = (float(match[4]), float(match[5])) if match[4] else None
            if not scenario.limited_link:
                samples.append(Sample(server, [process], int(match[3]), latency))
                continue
            limited = limited or LimitedLoad(start_limited())
            if limited.is_steady:
                packets = int(match[3]) + limited.packets_a_second
                samples.append(Sample(server, [process, limited.process], packets, latency))
    finally:
        if limited:
            limited.stop()
    return samples, seen.decode(errors="replace")


def run_once(options, name, scenario, profile):
    """Runs one server once and returns its figures."""
    report_file = LOGS / "load.json"
    report_file.unlink(missing_ok=True)
    # Children inherit the cores.
    if options.pin:
        os.sched_setaffinity(0, options.cores[:1])
    server = start(options, name, scenario, profile)
    if options.pin:
        os.sched_setaffinity(0, options.cores[1:])
    try:
        idle_bytes = resident_bytes(server.pid)
        with open(LOGS / "load.out", "w+") as out:
            process = subprocess.Popen(
                load_command(options, name, server, scenario, profile, report_file),
                stdout=out, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            )
            try:
                samples, said = watch_load(
                    process, server, scenario,
                    lambda: load_command(options, name, server, scenario, profile, LOGS / "limited.json", limited=True),
                )
                status = process.wait()
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait()
                process.stderr.close()
            out.seek(0)
            text = out.read()
        if status != 0:
            raise RunError(f"the load failed: {said.strip().splitlines()[-1] if said.strip() else status}")
        report = json.loads(text if name in FLOORS else report_file.read_text())
        return summarise(samples, report, scenario, idle_bytes)
    finally:
        server.stop()


def summarise(samples, report, scenario, idle_bytes):
    # The first line may be about a second that began before the last viewer joined, so the window starts with it.
    if len(samples) < 3:
        raise RunError(f"only {len(samples)} seconds of full load; give --seconds more")
    first, last = samples[0], samples[-1]
    packets = sum(
        sample.packets_a_second * (sample.at - before.at) / 1e9 for before, sample in zip(samples, samples[1:])
    )
    wall = last.at - first.at
    busiest = max(last.threads[task] - first.threads.get(task, 0) for task in last.threads)
    window = report["window"]
    media = [window[kind] for kind in ("video", "audio") if window.get(kind)]
    latency = window["video"]["latencyMilliseconds"]
    # The seconds in which a server finds the rate of a viewer say nothing of the others. The floor's generator prints none.
    if seconds := [sample.latency for sample in samples[1:] if sample.latency]:
        latency = {name: statistics.median(values) for name, values in zip(("p50", "p99"), zip(*seconds))}
    server = window.get("server") or {}
    resident = server.get("residentBytesPerSubscriber") or (last.resident - idle_bytes) / scenario.viewers
    return {
        "nsPerPacket": (last.cpu - first.cpu) / packets,
        "cores": (last.cpu - first.cpu) / wall,
        "busiestThreadNsPerPacket": busiest / packets,
        "packetsPerSecond": packets / (wall / 1e9),
        "p50": latency["p50"],
        "p99": latency["p99"],
        "lost": sum(kind["packetsLost"] for kind in media),
        "kibPerSubscriber": resident / 1024,
        "generatorCores": (last.generator - first.generator) / wall,
        "loadsNsPerPacket": server.get("cpuMicrosecondsPerPacket", 0) * 1000 or None,
        # All processes except the server and the load generator, including this script.
        "foreignCores": (last.busy - first.busy - (last.cpu - first.cpu) - (last.generator - first.generator)) / wall,
        "stolenCores": (last.stolen - first.stolen) / wall,
        "failures": report.get("failures") or {},
    }


# MARK: Results


def median(runs, field):
    values = [run[field] for run in runs if run.get(field) is not None]
    return statistics.median(values) if values else None


def spread(runs, field):
    values = [run[field] for run in runs]
    return min(values), max(values)


@dataclasses.dataclass
class Goal:
    sentence: str
    value: float | None
    limit: float

    @property
    def holds(self):
        return self.value is not None and self.value <= self.limit

    @property
    def verdict(self):
        if self.value is None:
            return "unknown"
        return "holds" if self.holds else "missed"


def ratio(results, scenario, profile, field, one, other):
    first, second = results.get((scenario, profile, one)), results.get((scenario, profile, other))
    if not first or not second:
        return None
    below = median(second, field)
    return median(first, field) / below if below else None


def judge(results, scenarios, profiles, servers):
    goals = []

    def goal(sentence, value, limit):
        goals.append(Goal(sentence, value, limit))

    for profile in profiles:
        for scenario in scenarios:
            where = f"{SCENARIOS[scenario].title}, {profile}"
            if "nagare" not in servers:
                continue
            if "pion" in servers:
                limit = 0.4 if scenario == "conference" else 0.3
                if scenario != "v20":
                    value = ratio(results, scenario, profile, "nsPerPacket", "nagare", "pion")
                    goal(f"{where}: CPU at most {limit} of Pion's", value, limit)
                value = ratio(results, scenario, profile, "p99", "nagare", "pion")
                # On a link with losses, the round trip of a retransmission is most of it.
                limit, name = (1, "that") if SCENARIOS[scenario].link else (0.5, "half")
                goal(f"{where}: p99 latency at most {name} of Pion's", value, limit)
            if "floor" in servers and scenario in ("v50", "v100", "v200", "v400", "v1000"):
                value = ratio(results, scenario, profile, "nsPerPacket", "nagare", "floor")
                goal(f"{where}: CPU at most 1.3 times the floor", value, 1.3)
            if "nagare-off" in servers and scenario.startswith("v"):
                on, off = (results.get((scenario, profile, name)) for name in ("nagare", "nagare-off"))
                value = median(on, "nsPerPacket") - median(off, "nsPerPacket") if on and off else None
                goal(f"{where}: estimation costs at most 150 ns a packet", value, 150)
            if "nagare-2" in servers and scenario == "v200":
                value = ratio(results, scenario, profile, "nsPerPacket", "nagare-2", "nagare")
                goal(f"{where}: CPU of two loops at most 1.1 times that of one", value, 1.1)
            runs = results.get((scenario, profile, "nagare"))
            if not SCENARIOS[scenario].link:
                goal(f"{where}: nothing lost", float(sum(run["lost"] for run in runs)) if runs else None, 0)
    return goals


def number(value, places=0):
    return "–" if value is None else f"{value:,.{places}f}"


def markdown(results, scenarios, profiles, servers, rounds, seconds):
    lines = [
        f"Medians of {rounds} runs of {seconds:g} s each, smallest and largest in brackets; CPU time of the server's process "
        "per packet that arrived at viewers.",
    ]
    for profile in profiles:
        lines += [
            "",
            f"**{PROFILES[profile]}**",
            "",
            "| | | CPU, ns a packet | of Pion | of floor | p50, ms | p99, ms | lost | KiB a viewer |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        ]
        for scenario in scenarios:
            for name in servers:
                runs = results.get((scenario, profile, name))
                if not runs:
                    continue
                low, high = spread(runs, "nsPerPacket")
                memory = None if name in FLOORS else median(runs, "kibPerSubscriber")
                cells = [
                    SCENARIOS[scenario].title,
                    TITLES[name],
                    f"{number(median(runs, 'nsPerPacket'))} ({number(low)}–{number(high)})",
                    number(ratio(results, scenario, profile, "nsPerPacket", name, "pion"), 2),
                    number(ratio(results, scenario, profile, "nsPerPacket", name, "floor"), 2),
                    number(median(runs, "p50"), 2),
                    number(median(runs, "p99"), 2),
                    str(sum(run["lost"] for run in runs)),
                    number(memory),
                ]
                lines.append("| " + " | ".join(cells) + " |")
    lines += two_loops(results, scenarios, profiles)
    return "\n".join(lines) + "\n"


def two_loops(results, scenarios, profiles):
    """The effect of a second loop: the CPU time per packet, and the capacity until the busiest thread is full."""
    rows = []
    for profile in profiles:
        for scenario in scenarios:
            cost = ratio(results, scenario, profile, "nsPerPacket", "nagare-2", "nagare")
            busiest = ratio(results, scenario, profile, "busiestThreadNsPerPacket", "nagare", "nagare-2")
            if cost is None or busiest is None:
                continue
            rows.append(
                f"| {SCENARIOS[scenario].title} | {PROFILES[profile]} | {number(cost, 2)} | {number(busiest, 2)} |"
            )
    if not rows:
        return []
    return [
        "",
        "Two loops against one:",
        "",
        "| | | CPU a packet | packets until a thread is full |",
        "| --- | --- | ---: | ---: |",
        *rows,
    ]


def as_json(results, goals, options, machine, failures):
    return {
        "schema": SCHEMA,
        "machine": machine,
        "rounds": options.rounds,
        "seconds": options.seconds,
        "videoKilobitsPerSecond": VIDEO_KBPS,
        "framesPerSecond": FPS,
        "results": [
            {
                "scenario": scenario,
                "profile": profile,
                "server": name,
                "median": {
                    field: median(runs, field)
                    for field in (
                        "nsPerPacket", "busiestThreadNsPerPacket", "cores", "packetsPerSecond", "p50", "p99",
                        "kibPerSubscriber",
                    )
                },
                "lost": sum(run["lost"] for run in runs),
                "runs": runs,
            }
            for (scenario, profile, name), runs in results.items()
        ],
        "goals": [
            {"goal": goal.sentence, "value": goal.value, "limit": goal.limit, "verdict": goal.verdict} for goal in goals
        ],
        "failures": failures,
    }


# MARK: The command


def choice(known):
    def parse(text):
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name} is not one of {', '.join(known)}")
        return names

    return parse


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="runs of each case")
    parser.add_argument("--seconds", type=float, default=8, help="measured seconds of each run")
    usual = ",".join(name for name, scenario in SCENARIOS.items() if not scenario.is_large)
    parser.add_argument("--scenarios", type=choice(SCENARIOS), default=usual, help="the scenarios; more: v400, v1000")
    parser.add_argument("--profiles", type=choice(PROFILES), default=",".join(PROFILES), help="the SRTP profiles")
    parser.add_argument("--servers", type=choice(TITLES), default=",".join(TITLES), help="the servers")
    parser.add_argument("--address", help="the address that all servers listen on (default: the machine's own)")
    parser.add_argument("--nagare", default=str(ROOT / ".build" / "release" / "nagare"), help="Nagare's program")
    parser.add_argument("--load", help="the program with the load generator (default: the one of --nagare)")
    parser.add_argument(
        "--nagare-argument", action="append", default=[], help="a further argument of nagare serve; repeatable"
    )
    parser.add_argument("--tools", type=Path, default=ROOT / ".build-compare", help="the folder of Benchmarks/compare/build")
    parser.add_argument("--output", type=Path, default=ROOT / "artifacts" / "bench", help="the folder for results")
    parser.add_argument(
        "--pin", action="store_true", help="the server on the first core and the load on the others: less noise"
    )
    parser.add_argument("--expect-goals", action="store_true", help="exit with status 1 when a goal is missed")
    options = parser.parse_args()
    for name in ("scenarios", "profiles", "servers"):
        value = getattr(options, name)
        setattr(options, name, value.split(",") if isinstance(value, str) else value)
    if options.rounds < 1 or options.seconds < 4:
        parser.error("--rounds must be at least 1 and --seconds at least 4")
    options.cores = sorted(os.sched_getaffinity(0))
    if options.pin and len(options.cores) < 2:
        parser.error("--pin needs two cores at least")
    options.address = options.address or own_address()
    options.load = options.load or options.nagare
    return options


def measure(options):
    results, failures = collections.defaultdict(list), []
    cases = [(scenario, profile) for profile in options.profiles for scenario in options.scenarios]
    total = options.rounds * len(cases) * len(options.servers)
    done, began = 0, time.monotonic()
    for round_number in range(options.rounds):
        for scenario, profile in cases:
            # Each round starts with another server.
            turn = round_number % len(options.servers)
            for name in options.servers[turn:] + options.servers[:turn]:
                done += 1
                if name in FLOORS and SCENARIOS[scenario].link:
                    continue
                left = (time.monotonic() - began) / done * (total - done)
                head = f"[{done}/{total}, {left / 60:.0f} min left] {SCENARIOS[scenario].title} {profile} {TITLES[name]}"
                try:
                    run = run_once(options, name, SCENARIOS[scenario], profile)
                except (RunError, OSError, ValueError, KeyError) as error:
                    failures.append({"scenario": scenario, "profile": profile, "server": name, "error": str(error)})
                    print(f"{head}: FAILED: {error}", file=sys.stderr, flush=True)
                    continue
                run["round"] = round_number
                results[scenario, profile, name].append(run)
                notes = f", {run['lost']} lost" if run["lost"] else ""
                for field, whose in (("foreignCores", "other processes"), ("stolenCores", "the host")):
                    if run[field] > FOREIGN_CORES_MAX:
                        notes += f", {whose} took {run[field]:.2f} cores"
                print(
                    f"{head}: {run['nsPerPacket']:,.0f} ns a packet, p50 {run['p50']:.2f} p99 {run['p99']:.2f} ms{notes}",
                    file=sys.stderr, flush=True,
                )
    return results, failures


def main():
    global LOGS
    options = parse_arguments()
    options.output.mkdir(parents=True, exist_ok=True)
    LOGS = options.output / "logs"
    LOGS.mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    machine = describe_machine()
    results, failures = measure(options)
    goals = judge(results, options.scenarios, options.profiles, options.servers)
    table = markdown(
        results, options.scenarios, options.profiles, options.servers, options.rounds, options.seconds
    )
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    disturbed = sum(
        max(run["foreignCores"], run["stolenCores"]) > FOREIGN_CORES_MAX for runs in results.values() for run in runs
    )
    if disturbed:
        table += f"\nOther processes used more than {FOREIGN_CORES_MAX} of a core during {disturbed} runs: these are unreliable.\n"
    table += f"\n{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}; {packages}.\n"
    (options.output / "table.md").write_text(table)
    (options.output / "compare.json").write_text(
        json.dumps(as_json(results, goals, options, machine, failures), indent=2, ensure_ascii=False) + "\n"
    )
    print(table)
    for goal in goals:
        print(f"{goal.verdict:8} {goal.sentence}: {number(goal.value, 2)}")
    held = sum(goal.holds for goal in goals)
    print(f"\n{held} of {len(goals)} goals hold. {options.output}/table.md, {options.output}/compare.json")
    if failures:
        sys.exit(f"error: {len(failures)} runs failed; the first: {failures[0]['error']}")
    if options.expect_goals and held < len(goals):
        sys.exit(1)


if __name__ == "__main__":
    main()
