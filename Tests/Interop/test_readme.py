"""The README's commands. Those in blocks that begin with ```sh runnable are executed as they stand, each block in a folder and a
network of its own, where the node's default ports are free."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from harness.installed import REPOSITORY
from harness.node import BINARY, ENVIRONMENT

BLOCK_SECONDS = 90
README = (REPOSITORY / "README.md").read_text()
BLOCKS = re.findall(r"^```sh runnable\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
# Commands that run until they are stopped, and the ports on which they listen.
SERVERS = {"nagare serve": 8080, "nagare impair": 8088}

# A node announces the addresses of a network, of which a new namespace has none.
PREPARATION = """
set -euo pipefail
ip link set lo up
ip link add near type veth peer name far
ip address add 198.18.0.1/24 dev near
ip link set near up
servers=()
serve() {
    local port=$1
    shift
    "$@" <&0 &
    servers+=($!)
    until (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
        kill -0 "${servers[-1]}" || { echo "ended: $*"; exit 1; }
        sleep 0.2
    done
}
exec 0< <(sleep infinity)
set -x
"""
END = """
for server in "${servers[@]}"; do
    kill -0 "$server"
    kill "$server"
    wait "$server"
done
"""


def script(block: str) -> str:
    lines = []
    for line in block.replace("\\\n", " ").splitlines():
        server = next((name for name in SERVERS if line.startswith(name)), None)
        lines.append(f"serve {SERVERS[server]} {line}" if server else line)
    return PREPARATION + "\n".join(lines) + END


def test_blocks_are_found() -> None:
    assert len(BLOCKS) >= 3


@pytest.mark.parametrize("block", BLOCKS, ids=[block.splitlines()[0] for block in BLOCKS])
def test_a_block_of_the_readme_runs(block: str, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "nagare").symlink_to(BINARY)
    folder = tmp_path / "folder"
    folder.mkdir()
    # The programs end with their namespace of processes.
    result = subprocess.run(
        ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", script(block)],
        cwd=folder,
        env={**ENVIRONMENT, "PATH": f"{programs}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BLOCK_SECONDS,
        check=False,
    )
    assert result.returncode == 0, f"{block}\n{result.stdout[-4000:]}"


@pytest.mark.parametrize("name", ["ops/run", "ops/test", "ops/package"])
def test_the_first_commands_exist(name: str) -> None:
    assert name in README and os.access(REPOSITORY / name, os.X_OK)


def test_linked_files_exist() -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)", README)
    assert len(links) > 5
    for link in links:
        assert (REPOSITORY / link).exists(), link
