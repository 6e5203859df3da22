#!/usr/bin/env python3
"""Starts Janus and translates WHIP and WHEP to the interface of its videoroom plugin.

Only signaling passes through this bridge; media goes between the clients and Janus directly. Janus is the distribution's
package with its defaults. The configuration below sets its addresses and disables unused plugins.

Prints "janus PID" when it is ready. Stops Janus when it ends.
"""

import argparse
import http.client
import http.server
import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

PLUGINS_FOLDERS = ["/usr/lib/x86_64-linux-gnu/janus", "/usr/lib/aarch64-linux-gnu/janus", "/usr/lib/janus"]
REQUEST_SECONDS = 15
START_SECONDS = 20
OFFER_BYTES_MAX = 256 * 1024


class Refusal(Exception):
    """A request that is refused: an HTTP status and a reason."""

    def __init__(self, status, sentence):
        super().__init__(sentence)
        self.status = status


def write_configuration(folder, address, api_port):
    """Writes Janus' configuration files."""
    root = next((name for name in PLUGINS_FOLDERS if os.path.isdir(name)), None)
    if root is None:
        raise SystemExit("error: Janus' plugins are not installed: apt-get install janus")

    def others(kind, keep):
        names = sorted(os.listdir(f"{root}/{kind}")) if os.path.isdir(f"{root}/{kind}") else []
        return ",".join(name for name in names if name.endswith(".so") and name != keep)

    with open(f"{folder}/janus.jcfg", "w") as file:
        file.write(f"""
general: {{
    configs_folder = "{folder}"
    plugins_folder = "{root}/plugins"
    transports_folder = "{root}/transports"
    events_folder = "{root}/events"
    loggers_folder = "{root}/loggers"
    debug_level = 4
    # All clients use the bridge's one session, which may be idle.
    session_timeout = 0
}}
nat: {{
    nice_debug = false
    ice_lite = true
    ice_enforce_list = "{address}"
}}
plugins: {{ disable = "{others('plugins', 'libjanus_videoroom.so')}" }}
transports: {{ disable = "{others('transports', 'libjanus_http.so')}" }}
events: {{ broadcast = false }}
""")
    with open(f"{folder}/janus.transport.http.jcfg", "w") as file:
        file.write(f"""
general: {{
    json = "compact"
    base_path = "/janus"
    http = true
    port = {api_port}
    ip = "127.0.0.1"
    https = false
}}
admin: {{ admin_http = false }}
""")
    with open(f"{folder}/janus.plugin.videoroom.jcfg", "w") as file:
        file.write("general: { }\n")


class Janus:
    """Janus' HTTP interface: requests, and a long poll for its events."""

    def __init__(self, api_port):
        self.base = f"http://127.0.0.1:{api_port}/janus"
        self.numbers = itertools.count(1)
        self.waiting = {}
        self.session = None

    def connect(self, process):
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.session = self.call("", {"janus": "create"})["data"]["id"]
                break
            except (urllib.error.URLError, ConnectionError):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("error: Janus did not start; see its log") from None
                time.sleep(0.1)
        threading.Thread(target=self.poll, daemon=True).start()

    def call(self, path, message):
        """Sends a request and returns the answer."""
        message.setdefault("transaction", str(next(self.numbers)))
        request = urllib.request.Request(
            self.base + path, json.dumps(message).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as response:
            answer = json.load(response)
        if answer.get("janus") == "error":
            raise Refusal(502, f"Janus: {answer['error']['reason']}")
        return answer

    def poll(self):
        while True:
            try:
                with urllib.request.urlopen(f"{self.base}/{self.session}?maxev=20", timeout=60) as response:
                    events = json.load(response)
            except (OSError, ValueError, http.client.HTTPException):
                time.sleep(0.1)
                continue
            for event in events if isinstance(events, list) else [events]:
                box = self.waiting.get(event.get("transaction"))
                if box is not None and event.get("janus") in ("event", "error"):
                    box.put(event)

    def attach(self):
        answer = self.call(f"/{self.session}", {"janus": "attach", "plugin": "janus.plugin.videoroom"})
        return answer["data"]["id"]

    def detach(self, handle):
        self.call(f"/{self.session}/{handle}", {"janus": "detach"})

    def ask(self, handle, body, jsep=None):
        """Sends a message to the plugin and returns its data and its session description."""
        transaction = str(next(self.numbers))
        box = self.waiting[transaction] = queue.Queue()
        try:
            message = {"janus": "message", "transaction": transaction, "body": body}
            if jsep:
                message["jsep"] = jsep
            event = self.call(f"/{self.session}/{handle}", message)
            if event.get("janus") == "ack":
                event = box.get(timeout=REQUEST_SECONDS)
        except queue.Empty:
            raise Refusal(504, "Janus did not answer in time") from None
        finally:
            del self.waiting[transaction]
        if event.get("janus") == "error":
            raise Refusal(502, f"Janus: {event['error']['reason']}")
        data = event["plugindata"]["data"]
        if "error" in data:
            raise Refusal(502, f"Janus: {data['error']}")
        return data, event.get("jsep")


def sections(sdp):
    """The lines of a session description, divided into the session part and one part for each media section."""
    parts = [[]]
    for line in sdp.replace("\r\n", "\n").strip().split("\n"):
        if line.startswith("m="):
            parts.append([])
        parts[-1].append(line)
    return parts


def attribute(lines, name):
    return next((line.split(":", 1)[1] for line in lines if line.startswith(f"a={name}:")), None)


def text(parts):
    return "".join(f"{line}\r\n" for part in parts for line in part)


def set_up(parts, role):
    """The description with the DTLS role `role`."""
    return [[f"a=setup:{role}" if line.startswith("a=setup:") else line for line in part] for part in parts]


def with_candidate(sdp, address):
    """The description with a candidate, if it has none.

    Janus starts its ICE agent at the first candidate. A client of a public server need not send any, because the server
    learns its address from its checks (RFC 8445 §7.3.1.3). Janus' agent is lite and sends no checks, so it never sends
    anything to this candidate.
    """
    if "\na=candidate:" in sdp:
        return sdp
    parts = sections(sdp)
    parts[1].append(f"a=candidate:1 1 udp 1 {address} 9 typ host")
    return text(parts)


def answers(client, janus):
    """Makes two answers from two offers: the viewer's, and that of Janus, which always sends subscribers an offer.

    Returns the answer for the viewer and the answer for Janus. Refuses offers that differ in their sections, their order
    or their payload types.
    """
    ours, theirs = sections(client), sections(janus)
    if len(ours) != len(theirs):
        raise Refusal(409, "The publisher does not send what the viewer asked for.")
    to_viewer, to_janus = [theirs[0]], [ours[0]]
    for mine, its in zip(ours[1:], theirs[1:]):
        kind, _, _, *formats = its[0].split()
        mine_kind, _, _, *mine_formats = mine[0].split()
        if kind != mine_kind or attribute(mine, "mid") != attribute(its, "mid"):
            raise Refusal(409, "The sections of viewer and publisher differ.")
        if not set(formats) <= set(mine_formats):
            raise Refusal(409, f"Janus sends payload types {formats}, and the viewer takes {mine_formats}.")
        known = {line for line in mine if line.startswith("a=extmap:")}
        # The viewer's extensions may have a direction, those of Janus have none.
        known_plain = {line.split("/")[0] for line in known} | known
        to_viewer.append([line for line in its if not line.startswith("a=extmap:") or line in known_plain])
        shared = {line for line in its if line.startswith("a=extmap:")}
        to_janus.append([line for line in mine if not line.startswith("a=extmap:") or line in shared])
    # The viewer is the DTLS client, like a browser.
    return text(set_up(to_viewer, "passive")), text(set_up(to_janus, "active"))


class Bridge:
    """Channels and sessions."""

    def __init__(self, janus, address):
        self.janus = janus
        self.address = address
        self.lock = threading.Lock()
        self.rooms = {}
        self.feeds = {}
        self.admin = janus.attach()

    def room(self, channel):
        with self.lock:
            if channel not in self.rooms:
                room = len(self.rooms) + 1
                self.janus.ask(
                    self.admin,
                    {
                        "request": "create",
                        "room": room,
                        "publishers": 100,
                        "bitrate": 0,
                        "audiocodec": "opus",
                        "videocodec": "vp8",
                    },
                )
                self.rooms[channel] = room
            return self.rooms[channel]

    def publish(self, channel, offer):
        handle = self.janus.attach()
        data, jsep = self.janus.ask(
            handle,
            {"request": "joinandconfigure", "room": self.room(channel), "ptype": "publisher"},
            {"type": "offer", "sdp": with_candidate(offer, self.address), "trickle": False},
        )
        if jsep is None:
            raise Refusal(502, "Janus gave no answer.")
        self.feeds[channel] = data["id"]
        return handle, jsep["sdp"]

    def watch(self, channel, offer):
        feed = self.feeds.get(channel)
        if feed is None:
            raise Refusal(409, "The channel has no publisher.")
        handle = self.janus.attach()
        _, jsep = self.janus.ask(
            handle,
            {
                "request": "join",
                "room": self.room(channel),
                "ptype": "subscriber",
                "streams": [{"feed": feed}],
            },
        )
        if jsep is None:
            raise Refusal(502, "Janus made no offer.")
        answer, for_janus = answers(offer, jsep["sdp"])
        for_janus = with_candidate(for_janus, self.address)
        self.janus.ask(handle, {"request": "start"}, {"type": "answer", "sdp": for_janus, "trickle": False})
        return handle, answer


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bridge = None

    def do_POST(self):
        body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), OFFER_BYTES_MAX)).decode()
        parts = self.path.strip("/").split("/")
        actions = {"whip": self.bridge.publish, "whep": self.bridge.watch}
        if len(parts) != 2 or parts[0] not in actions:
            self.answer(404, "No such path.")
            return
        try:
            handle, sdp = actions[parts[0]](parts[1], body)
        except Refusal as refusal:
            self.answer(refusal.status, str(refusal))
            return
        self.answer(201, sdp, [("Content-Type", "application/sdp"), ("Location", f"/sessions/{handle}")])

    def do_DELETE(self):
        parts = self.path.strip("/").split("/")
        try:
            self.bridge.janus.detach(int(parts[-1]))
            self.answer(200, "")
        except (Refusal, ValueError):
            self.answer(404, "No such session.")

    def answer(self, status, body, headers=()):
        data = body.encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", required=True, help="the address for WHIP, WHEP and media; not loopback")
    parser.add_argument("--port", type=int, default=8082, help="the port for WHIP and WHEP")
    parser.add_argument("--api-port", type=int, default=18088, help="the loopback port of Janus' interface")
    parser.add_argument("--log", default=os.devnull, help="Janus' log file")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="janus-") as folder, open(arguments.log, "wb") as log:
        write_configuration(folder, arguments.address, arguments.api_port)
        process = subprocess.Popen(["janus", "-F", folder], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            janus = Janus(arguments.api_port)
            janus.connect(process)
            Handler.bridge = Bridge(janus, arguments.address)
            server = Server((arguments.address, arguments.port), Handler)
            print(f"janus {process.pid}", flush=True)
            server.serve_forever()
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
