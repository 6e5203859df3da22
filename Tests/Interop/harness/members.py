"""Participants of a channel: the unmodified Sora Python SDK, each in a process of its own."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Callable

from .peers import Program
from .waiting import wait_until


class SoraMember(Program):
    """A running SDK client. Options are those of `harness.peer_sora`, in Python's spelling.

    `launch` changes the command that starts it.
    """

    def __init__(
        self,
        signaling: str,
        channel: str,
        role: str,
        *flags: str,
        launch: Callable[..., list[str]] = lambda *words: list(words),
        **options: object,
    ) -> None:
        words = [f"--{flag}" for flag in flags]
        for name, value in options.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        super().__init__(
            f"the SDK client ({role})",
            launch(sys.executable, "-m", "harness.peer_sora", role, signaling, channel, *words),
        )

    # Signaling.

    def offer(self, seconds: float = 15) -> dict[str, Any]:
        return self.wait("offer", seconds)

    @property
    def connection(self) -> str:
        """The connection id."""
        return self.offer()["connection_id"]

    def notified(self, event_type: str, **fields: object) -> list[dict[str, Any]]:
        """The notifications of a type that have the given fields."""
        return [
            one
            for one in list(self.reports)
            if one["event"] == "notify"
            and one.get("event_type") == event_type
            and all(one.get(key) == value for key, value in fields.items())
        ]

    def await_notification(self, event_type: str, seconds: float = 10, **fields: object) -> dict[str, Any]:
        found = wait_until(
            lambda: self.notified(event_type, **fields),
            f"{self.kind}: {event_type} with {fields}",
            seconds,
            describe=self.described,
        )
        return found[0]

    def connected(self, seconds: float = 20) -> "SoraMember":
        """Waits for the node's notification of the connection."""
        self.await_notification("connection.created", seconds, connection_id=self.connection)
        return self

    def closed(self, seconds: float = 15) -> tuple[int, str]:
        """How the server closed the WebSocket."""
        report = self.wait("closed", seconds)
        return report["code"], report["reason"]

    def disconnected(self, seconds: float = 15) -> str:
        return self.wait("disconnected", seconds)["message"]

    # Data channels.

    def switched(self, seconds: float = 20) -> "SoraMember":
        """Waits until the signaling has moved to data channels."""
        self.wait("switched", seconds)
        return self

    def messages(self, label: str) -> list[str]:
        return [one["text"] for one in list(self.reports) if one["event"] == "message" and one["label"] == label]

    def gets(self, label: str, texts: list[str], seconds: float = 10) -> None:
        """Waits until exactly these messages have arrived, in order."""
        wait_until(
            lambda: self.messages(label) == texts,
            f"{self.kind} gets {texts} on {label}",
            seconds,
            describe=lambda: (self.messages(label), self.described()),
        )

    def call(self, method: str, seconds: float = 10, **parameters: object) -> dict[str, Any]:
        """Calls a method over the data channel `rpc`, and returns the response. Without a prefix it is one of Sora's."""
        responses = lambda: [one["response"] for one in list(self.reports) if one["event"] == "rpc"]
        number = len(responses()) + 1
        request = {"jsonrpc": "2.0", "method": method if "/" in method else f"2025.2.0/{method}", "params": parameters, "id": number}
        self.send_command(f"send rpc {json.dumps(request)}")
        found = wait_until(
            lambda: [one for one in responses() if one["id"] == number],
            f"{self.kind}: the response to {method}",
            seconds,
            describe=lambda: (responses(), self.described()),
        )
        return found[0]

    def pushed(self, data: object, seconds: float = 10) -> None:
        """Waits for a push."""
        wait_until(
            lambda: data in [one["data"] for one in list(self.reports) if one["event"] == "push"],
            f"{self.kind} is pushed {data}",
            seconds,
            describe=self.described,
        )

    # Media.

    @property
    def streams(self) -> dict[str, dict[str, Any]]:
        """The latest statistics of each stream, by the sender's connection id."""
        stats = self.last("stats")
        return stats["streams"] if stats else {}

    def sees(self, sender: "SoraMember | str", seconds: float = 15, frames: int = 15, **exactly: object) -> dict[str, Any]:
        """Waits until `frames` more frames of a sender are decoded, with the given statistics."""
        name = sender if isinstance(sender, str) else sender.connection
        before = self.streams.get(name, {}).get("frames", 0)

        def look() -> dict[str, Any] | None:
            stream = self.streams.get(name)
            if not stream or stream["frames"] < before + frames:
                return None
            return stream if all(stream[key] == value for key, value in exactly.items()) else None

        return wait_until(look, f"{self.kind} sees {name} with {exactly}", seconds, describe=self.described)

    def hears(self, sender: "SoraMember | str", seconds: float = 15) -> None:
        """Waits until more audio of a sender is received."""
        name = sender if isinstance(sender, str) else sender.connection
        before = self.streams.get(name, {}).get("loud", 0)
        wait_until(
            lambda: self.streams.get(name, {}).get("loud", 0) > before,
            f"{self.kind} hears {name}",
            seconds,
            describe=self.described,
        )

    def growth(self, seconds: float, figure: str = "frames") -> dict[str, int]:
        """The growth of a counter of each stream during some seconds."""
        before = {name: stream[figure] for name, stream in self.streams.items()}
        time.sleep(seconds)
        return {name: stream[figure] - before.get(name, 0) for name, stream in self.streams.items()}

    def send_command(self, command: str) -> None:
        """Sends a command to the client: `unmute`, `mute` or `send LABEL TEXT`."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def described(self) -> object:
        others = [one for one in self.reports if one["event"] not in ("stats", "offer")][-8:]
        return self.streams, others, "".join(self.output[-10:])


Join = Callable[..., SoraMember]
