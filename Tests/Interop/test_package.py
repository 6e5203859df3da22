"""The packages of ops/package: their bytes, and their use in a system that has nothing of the build."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Iterator

import httpx
import pytest

from harness.installed import (
    UNIT, InstalledNode, build_packages, debian_package, in_system, installed_system, run, service_command,
)  # fmt: skip
from harness.node import BINARY
from harness.offers import SDP, offer

# The packages are made and installed here.
pytestmark = pytest.mark.timeout(300)

INSTALL = "apt-get install -y -qq --no-install-recommends /packages/*.deb"


@pytest.fixture(scope="module")
def unpacked(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the Debian package."""
    folder = tmp_path_factory.mktemp("unpacked")
    run("dpkg-deb", "--extract", debian_package(packages), folder)
    return folder


@pytest.fixture(scope="module")
def root(packages: Path, minimal_system: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A minimal system in which the package manager installed the package with its dependencies."""
    yield from installed_system(tmp_path_factory.mktemp("system"), minimal_system, packages, INSTALL)


def token(root: Path) -> str:
    return (root / "etc/nagare/token").read_text().strip()


def test_a_build_in_another_environment_has_the_same_bytes(packages: Path, tmp_path: Path) -> None:
    other = build_packages(tmp_path, 0o077, TZ="Asia/Tokyo", LC_ALL="C", DPKG_DEB_THREADS_MAX="1")
    assert sorted(other) == sorted(one.name for one in packages.iterdir()) and len(other) == 2
    for name, content in other.items():
        assert content == (packages / name).read_bytes(), f"{name} differs between two builds"


def test_the_archive_has_a_program_that_runs(packages: Path, tmp_path: Path) -> None:
    (archive,) = packages.glob("*.tar.gz")
    run("tar", "--extract", "--file", archive, "--directory", tmp_path, "--strip-components=1")
    # Without the toolchain's libraries.
    assert run(tmp_path / "bin/nagare", "--version", env={}).startswith("nagare ")
    libraries = run("ldd", tmp_path / "bin/nagare")
    assert "not found" not in libraries and "libswift" not in libraries, libraries
    for name in ("share/man/man1/nagare.1.gz", "share/man/man5/nagare.yaml.5.gz", UNIT):
        assert (tmp_path / name).is_file(), name


@pytest.mark.parametrize("page", ["man1/nagare.1.gz", "man5/nagare.yaml.5.gz"])
def test_a_manual_page_has_no_warnings(unpacked: Path, page: str) -> None:
    environment = {**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"}
    command = ["man", "--warnings", "--local-file", unpacked / "usr/share/man" / page]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 0 and not result.stderr, result.stderr
    for title in ("NAME", "DESCRIPTION", "SEE ALSO"):
        assert title in result.stdout, title


def test_the_manual_pages_name_every_setting(unpacked: Path) -> None:
    program = run("gzip", "-dc", unpacked / "usr/share/man/man1/nagare.1.gz").replace("\\-", "-")
    file = run("gzip", "-dc", unpacked / "usr/share/man/man5/nagare.yaml.5.gz").replace("\\-", "-")
    flags = [line.split("`")[1].split()[0] for line in run(BINARY, "settings", "--markdown").splitlines()]
    assert len(flags) > 50, flags
    for flag in flags:
        assert f"\\fB{flag}" in program, flag
        if flag != "--config":
            assert f"\\fB{flag.removeprefix('--')}\\fR" in file, flag


COMPLETIONS = {
    "bash": ("bash-completion/completions/nagare", ["bash", "-n"]),
    "zsh": ("zsh/vendor-completions/_nagare", ["zsh", "-n"]),
    "fish": ("fish/vendor_completions.d/nagare.fish", ["fish", "--no-execute"]),
}


@pytest.mark.parametrize("shell", COMPLETIONS)
def test_completions_have_no_syntax_errors(unpacked: Path, shell: str) -> None:
    name, check = COMPLETIONS[shell]
    run(*check, unpacked / "usr/share" / name)


def test_the_service_is_valid(unpacked: Path, tmp_path: Path) -> None:
    unit = (unpacked / UNIT).read_text()
    assert "ExecStart=/usr/bin/nagare serve --config /etc/nagare/nagare.yaml\n" in unit, unit
    assert "ExecReload=" in unit, unit
    # A node that hangs is started again.
    for line in ("Type=notify", "WatchdogSec=10", "Restart=on-failure"):
        assert f"{line}\n" in unit, unit
    # The program is not installed on this machine, and systemd looks for it.
    program = tmp_path / "nagare"
    program.touch(0o755)
    copy = tmp_path / "nagare.service"
    copy.write_text(unit.replace("/usr/bin/nagare", str(program)))
    errors = run("systemd-analyze", "verify", "--man=no", copy)
    assert "nagare.service" not in errors, errors


def test_what_is_secret_is_not_readable_for_other_users(root: Path) -> None:
    group = int(in_system(root, "id", "-g", "nagare"))
    for name, owner, mode in (("nagare.yaml", group, 0o640), ("token", group, 0o640), (".", group, 0o750)):
        status = (root / "etc/nagare" / name).stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (0, owner, mode), name
    assert len(token(root)) == 32, "the token of the installation"
    assert in_system(root, "getent", "passwd", "nagare").strip().endswith("/usr/sbin/nologin")


def test_the_node_starts_as_it_is_installed_and_needs_the_token(root: Path, artifacts: Path) -> None:
    """The command, the user and the files of the service."""
    log = artifacts / "node-package.log"
    with InstalledNode(root, log, service_command(root)) as node:
        assert httpx.get(node.origin).status_code == 200
        refused = httpx.post(f"{node.origin}/whip/demo", headers=SDP, content=offer("sendonly"))
        assert refused.status_code == 401, refused.text
        headers = {**SDP, "Authorization": f"Bearer {token(root)}"}
        admitted = httpx.post(f"{node.origin}/whip/demo", headers=headers, content=offer("sendonly"))
        assert admitted.status_code == 201, admitted.text


def test_a_new_installation_keeps_what_the_operator_changed_and_a_purge_leaves_nothing(root: Path) -> None:
    (deb,) = (root / "packages").glob("*.deb")
    configuration = root / "etc/nagare/nagare.yaml"
    changed = configuration.read_text() + "log-format: json\n"
    configuration.write_text(changed)
    old_token = token(root)
    in_system(root, "dpkg", "--install", f"/packages/{deb.name}")
    assert configuration.read_text() == changed
    assert configuration.stat().st_mode & 0o777 == 0o640
    assert token(root) == old_token
    # An operator may remove what the configuration does not need.
    configuration.unlink()
    (root / "etc/nagare/token").unlink()
    in_system(root, "dpkg", "--install", f"/packages/{deb.name}")
    assert not configuration.exists() and not (root / "etc/nagare/token").exists()
    # An installation whose environment has the token keeps it.
    configuration.write_text(changed)
    (root / "etc/nagare/environment").write_text("NAGARE_LOG_LEVEL=info\nNAGARE_TOKEN='of-the-environment'\n")
    in_system(root, "dpkg", "--install", f"/packages/{deb.name}")
    assert token(root) == "of-the-environment"
    assert (root / "etc/nagare/environment").read_text() == "NAGARE_LOG_LEVEL=info\n"
    in_system(root, "dpkg", "--remove", "nagare")
    assert configuration.read_text() == changed and not (root / "usr/bin/nagare").exists()
    in_system(root, "dpkg", "--purge", "nagare")
    folders = [root / "var/lib/dpkg", root / "packages"]
    left = [path for path in root.rglob("*nagare*") if not any(path.is_relative_to(folder) for folder in folders)]
    assert not left, left
