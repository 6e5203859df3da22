"""The operators' API: its OpenAPI document against the node, and the commands that use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Callable

import httpx
import pytest

from harness.node import BINARY, Node
from harness.offers import SDP, offer

TOKEN = "operators-0123456789"
# A string of the right length need not be a URL, or a name that a channel can have.
CONFIGURATION = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422"]
"""


# A quarter of a minute on an idle machine.
@pytest.mark.timeout(300)
def test_the_node_keeps_to_its_openapi_document(own_node: Callable[..., Node], tmp_path: Path) -> None:
    node = own_node("--admin-token", TOKEN, "--app", "live:0123456789abcdef", "--url-key", "primary:0123456789abcdef")
    configuration = tmp_path / "schemathesis.toml"
    configuration.write_text(CONFIGURATION)
    run = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(configuration),
            "run", f"{node.admin}/v1/openapi.json", "-H", f"Authorization: Bearer {TOKEN}",
            "--phases", "coverage,fuzzing", "--max-examples", "10", "--seed", "1", "--workers", "1", "--no-color",
            "--generation-database", "none", "--request-timeout", "60", "--rate-limit", "90/s",
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    assert httpx.get(f"{node.admin}/healthz").status_code == 200


def nagare(node: Node, *arguments: str, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BINARY), *arguments, "--api", node.admin],
        env={**os.environ, "NAGARE_ADMIN_TOKEN": token}, capture_output=True, text=True, timeout=30,
    )  # fmt: skip


def test_operators_list_kick_ban_and_terminate_with_commands(own_node: Callable[..., Node]) -> None:
    # Clients that never connect, for longer than the commands take on a busy machine.
    node = own_node("--admin-token", TOKEN, "--limit", "unanswered-seconds=60")
    response = httpx.post(f"{node.origin}/whip/lobby", headers=SDP, content=offer("sendonly"))
    assert response.status_code == 201, response.text
    assert "lobby" in nagare(node, "channels").stdout
    members = json.loads(nagare(node, "members", "lobby", "--json").stdout)["members"]
    user = members[0]["user_id"]
    assert user in nagare(node, "members", "lobby").stdout
    assert "muted" in nagare(node, "mute", "lobby", user, "--kind", "audio").stdout
    muted = json.loads(nagare(node, "members", "lobby", "--json").stdout)["members"][0]
    assert muted["connections"][0]["muted"] == ["audio"]
    # A publisher receives nothing.
    assert "connections changed: 0" in nagare(node, "subscribe", "lobby", user, "--kind", "video", "--off").stdout
    viewer = httpx.post(f"{node.origin}/whep/lobby", headers=SDP, content=offer("recvonly"))
    assert viewer.status_code == 201, viewer.text
    members = json.loads(nagare(node, "members", "lobby", "--json").stdout)["members"]
    watching = next(one["user_id"] for one in members if one["user_id"] != user)
    assert "connections changed: 1" in nagare(node, "subscribe", "lobby", watching, "--to", user, "--off").stdout
    assert [line.split()[1:] for line in nagare(node, "subscriptions", "lobby", watching).stdout.splitlines()[1:]] == [
        [user, "none"], ["(others)", "camera", "audio,", "screen", "audio,", "camera", "video,", "screen", "video"],
    ]  # fmt: skip
    assert httpx.delete(f"{node.origin}{viewer.headers['location']}").status_code == 200
    # The channel of a WHIP client alone has no roles.
    refused = nagare(node, "role", "lobby", user, "audience")
    assert refused.returncode == 1 and "interactive" in refused.stderr
    assert "kicked" in nagare(node, "kick", "lobby", user).stdout
    assert nagare(node, "ban", "lobby", "eve", "--for", "15m").returncode == 0
    assert "eve" in nagare(node, "ban", "lobby").stdout
    assert nagare(node, "unban", "lobby", "eve").returncode == 0
    assert nagare(node, "block", "streams", "lobby").returncode == 0
    refused = httpx.post(f"{node.origin}/whip/lobby", headers=SDP, content=offer("sendonly"))
    assert refused.status_code == 403 and refused.json()["code"] == 0x30020904
    assert nagare(node, "unblock", "streams", "lobby").returncode == 0

    # Each failure is one sentence, with a status of its own.
    for arguments, token, status in [
        (("unban", "lobby", "eve"), TOKEN, 1), (("terminate", "lobby"), TOKEN, 1), (("kick", "lobby", "eve"), TOKEN, 1),
        (("channels",), "wrong-0123456789", 77), (("channels",), "short", 64),
        (("ban", "lobby", "eve", "--for", "soon"), TOKEN, 64),
    ]:  # fmt: skip
        failed = nagare(node, *arguments, token=token)
        assert failed.returncode == status, failed.stderr
        assert failed.stdout == "" and failed.stderr.startswith("nagare: ") and failed.stderr.count("\n") == 1
    node.close()
    failed = nagare(node, "channels")
    assert failed.returncode == 69 and "does not answer (Connection refused); is --api" in failed.stderr
