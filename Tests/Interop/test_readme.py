"""The README's commands. Those in blocks that begin with ```sh runnable are executed as they stand, each block in a folder and a
network of its own, where the node's default ports are free. Those that begin with ```sh operating are executed beside a node with
a call of three people."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.chromium import EXECUTABLE
from harness.cluster import SERVER
from harness.installed import REPOSITORY
from harness.node import BINARY, ENVIRONMENT

BLOCK_SECONDS = 90
README = (REPOSITORY / "README.md").read_text()
BLOCKS = re.findall(r"^```sh (runnable|operating)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
# Commands that run until they are stopped, and where they listen.
SERVERS = {"nagare serve": "127.0.0.1/8080", "nagare impair": "127.0.0.1/8088", "redis-server": "10.0.0.1/6379"}

# A node announces the addresses of a network, of which a new namespace has none.
PREPARATION = """
set -euo pipefail
ip link set lo up
ip link add near type veth peer name far
# Without addresses of the kernel's own, which it takes into use a second or two later: a browser gives up what it fetches when
# addresses change.
ip link set near addrgenmode none
ip link set far addrgenmode none
ip link set near up
ip link set far up
ip address add 198.18.0.1/24 dev near
# Addresses and files that commands name.
ip address add 10.0.0.1/24 dev near
ip address add 10.0.0.5/24 dev near
mkdir -p /etc/nagare /var/lib/nagare
mount -t tmpfs none /etc/nagare
mount -t tmpfs none /var/lib/nagare
openssl rand -hex 32 > /etc/nagare/cluster.secret
servers=()
serve() {
    local address=$1
    shift
    "$@" <&0 &
    servers+=($!)
    until (: <"/dev/tcp/$address") 2>/dev/null; do
        kill -0 "${servers[-1]}" || { echo "ended: $*"; exit 1; }
        sleep 0.2
    done
}
exec 0< <(sleep infinity)
set -x
"""
# A node with the operators' token of the README, or without one, and a call.
OPERATING = """
openssl rand -hex 16 > admin.token
serve 127.0.0.1/8080 nagare serve --dev TOKEN
coproc call (PYTHONPATH="$HARNESS" exec "$PYTHON" -m harness.call_of_three http://127.0.0.1:8080 demo)
read -r line <&"${call[0]}"
"""
END = """
for server in "${servers[@]}"; do
    kill -0 "$server"
    kill "$server"
    wait "$server"
done
"""


def script(kind: str, block: str) -> str:
    lines = []
    if kind == "operating":
        lines.append(OPERATING.replace("TOKEN", "--admin-token @admin.token" if "admin.token" in block else ""))
    for line in block.replace("\\\n", " ").splitlines():
        server = next((name for name in SERVERS if line.startswith(name)), None)
        lines.append(f"serve {SERVERS[server]} {line}" if server else line)
    return PREPARATION + "\n".join(lines) + END


def test_blocks_are_found() -> None:
    assert len(BLOCKS) >= 7


@pytest.mark.parametrize("kind, block", BLOCKS, ids=[block.splitlines()[0] for _, block in BLOCKS])
def test_a_block_of_the_readme_runs(kind: str, block: str, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "nagare").symlink_to(BINARY)
    # The server under the name that its tools' package has for it.
    (programs / "redis-server").symlink_to(shutil.which(SERVER))
    folder = tmp_path / "folder"
    folder.mkdir()
    # The programs end with their namespace of processes.
    result = subprocess.run(
        ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", script(kind, block)],
        cwd=folder,
        env={
            **ENVIRONMENT,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHON": sys.executable,
            "HARNESS": str(Path(__file__).parent),
            "NAGARE_CHROMIUM": EXECUTABLE,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BLOCK_SECONDS,
        check=False,
    )
    assert result.returncode == 0, f"{block}\n{result.stdout[-4000:]}"


@pytest.mark.static
@pytest.mark.parametrize("name", ["ops/run", "ops/test", "ops/package"])
def test_the_first_commands_exist(name: str) -> None:
    assert name in README and os.access(REPOSITORY / name, os.X_OK)


@pytest.mark.static
def test_linked_files_exist() -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)", README)
    assert len(links) > 5
    for link in links:
        assert (REPOSITORY / link).exists(), link
