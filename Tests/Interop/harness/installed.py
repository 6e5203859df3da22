"""Packages of the program under test, and minimal systems in which they are installed."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Iterator

import httpx

from .node import BINARY, ENVIRONMENT, LOOPBACK, STOP_SECONDS, free_media_port, free_tcp_port
from .waiting import wait_until

REPOSITORY = Path(__file__).resolve().parents[3]
# A minimal system of the release of this machine, made by ops/testing/prepare.sh.
MINIMAL_SYSTEM = REPOSITORY / ".build-root/minimal"
START_SECONDS = 30
# Of a login of root in Debian.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def run(*command: str | Path, **options: object) -> str:
    """Runs a command that must succeed; its output."""
    result = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **options,
    )
    assert result.returncode == 0, f"{shlex.join(map(str, command))}: {result.returncode}\n{result.stdout[-4000:]}"
    return result.stdout


def build_packages(folder: Path, mask: int = 0o022, **variables: str) -> dict[str, bytes]:
    """Packages the program under test into a folder; each file's bytes by its name."""
    environment = {**ENVIRONMENT, **variables}
    run("ops/package", "--binary", BINARY, "--out", folder, cwd=REPOSITORY, umask=mask, env=environment)
    return {one.name: one.read_bytes() for one in folder.iterdir()}


def debian_package(folder: Path) -> Path:
    (deb,) = folder.glob("*.deb")
    return deb


def installed_system(folder: Path, minimal: Path, packages: Path, script: str) -> Iterator[Path]:
    """A copy of a minimal system in which `script` ran as root. The script finds the Debian package in /packages."""
    root = folder / "root"
    try:
        run("cp", "-a", minimal, root)
        (root / "packages").mkdir()
        shutil.copy(debian_package(packages), root / "packages")
        in_system(root, "sh", "-ec", script)
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def in_system(root: Path, *command: str, **variables: str) -> str:
    """Runs a command in a system; it must succeed."""
    return run("chroot", root, *command, env={"PATH": PATH, "DEBIAN_FRONTEND": "noninteractive", **variables})


UNIT = "lib/systemd/system/nagare.service"


def service_command(root: Path) -> list[str]:
    """What the service manager runs."""
    lines = (root / UNIT).read_text().splitlines()
    return shlex.split(next(line for line in lines if line.startswith("ExecStart="))[10:])


class InstalledNode:
    """A node of a system, with a command of the system's own, on ports of the test or on those of its configuration."""

    def __init__(
        self, root: Path, log: Path, command: list[str], is_configured: bool = False, **variables: str
    ) -> None:
        self.root, self.log = root, log
        if is_configured:
            self.admin = f"{LOOPBACK}:3000"
            self.environment = {"PATH": PATH, **variables}
        else:
            http, self.admin = (f"{LOOPBACK}:{free_tcp_port()}" for _ in range(2))
            self.origin = f"http://{http}"
            self.environment = {
                "PATH": PATH,
                "NAGARE_HTTP": http,
                "NAGARE_ADMIN": self.admin,
                "NAGARE_MEDIA": f"{LOOPBACK}:{free_media_port()}",
                **variables,
            }
        # The mounts belong to the node's own namespace, so that they end with it. The user and the capability are the unit's.
        script = (
            'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && root=$1 && shift && exec chroot "$root" '
            "setpriv --reuid=nagare --regid=nagare --init-groups --inh-caps=+net_bind_service "
            '--ambient-caps=+net_bind_service "$@"'
        )
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", script, "sh", root, *command],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.environment,
            )
        wait_until(self.is_ready, "the node's readiness", START_SECONDS, describe=log.read_text)

    def is_ready(self) -> bool:
        assert self.process.poll() is None, f"the node ended with {self.process.returncode}: {self.log.read_text()}"
        try:
            return httpx.get(f"http://{self.admin}/readyz", timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def __enter__(self) -> InstalledNode:
        return self

    def __exit__(self, *failure: object) -> None:
        """Stops the node as a service manager does; its exit code must be 0."""
        self.process.terminate()
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait(10)
        assert code == 0 or failure[0], f"the node ended with {code} after SIGTERM: {self.log.read_text()}"
