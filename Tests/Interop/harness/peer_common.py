"""Shared code of the peer programs: WHIP and WHEP over HTTP, and reports as lines of JSON. Standard library only."""

from __future__ import annotations

import argparse
import json
import sys
import urllib.error
import urllib.parse
import urllib.request


class HTTPSession:
    """A WHIP or WHEP session without trickle ICE."""

    def __init__(self, endpoint: str, token: str | None) -> None:
        self.endpoint = endpoint
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.location: str | None = None

    def post(self, offer: str) -> str:
        """Posts the offer, if need be to another server, and returns the answer; an error status raises."""
        try:
            return self._post(offer)
        except urllib.error.HTTPError as error:
            if error.code != 307:
                raise
            # The library follows for GET only.
            self.endpoint = urllib.parse.urljoin(self.endpoint, error.headers["Location"])
            return self._post(offer)

    def _post(self, offer: str) -> str:
        request = urllib.request.Request(
            self.endpoint,
            data=offer.encode(),
            headers={"Content-Type": "application/sdp", **self.headers},
            method="POST",
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            self.location = urllib.parse.urljoin(self.endpoint, response.headers["Location"])
            return response.read().decode()

    def delete(self) -> int:
        """Ends the session; the status."""
        request = urllib.request.Request(self.location or "", headers=self.headers, method="DELETE")
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status


def report(event: str, **values: object) -> None:
    """Writes a line for the test that started this program."""
    sys.stdout.write(json.dumps({"event": event, **values}) + "\n")
    sys.stdout.flush()


def parser() -> argparse.ArgumentParser:
    """The options of every peer program."""
    options = argparse.ArgumentParser()
    options.add_argument("role", choices=["publish", "watch"])
    options.add_argument("endpoint")
    options.add_argument("--codec", default="VP8", choices=["VP8", "H264"])
    options.add_argument("--token")
    return options
