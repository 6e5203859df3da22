"""The Sora Python SDK (libwebrtc) as a member of a channel, unmodified: `python -m harness.peer_sora ROLE URL CHANNEL`.

It writes reports as lines of JSON to standard output, and reads the commands `unmute`, `mute` and `send LABEL TEXT` from
standard input. It disconnects at the end of the input. It sets only callbacks that hold Python's lock, polls audio, and exits without
destroying the SDK's objects, because the SDK crashes otherwise.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import threading
import time
from pathlib import Path

import numpy
from sora_sdk import Sora, SoraAudioSink, SoraVideoSink

from .peer_common import report

RATE = 48000
FPS = 25
COLOURS = {"red": (200, 40, 40), "green": (40, 200, 40), "blue": (40, 40, 200), "grey": (120, 120, 120)}


class Stream:
    """The media received from one sender."""

    def __init__(self) -> None:
        self.frames = self.width = self.height = self.loud = 0
        self.colour = [0, 0, 0]
        self.kinds: list[str] = []
        self.tracks: list = []
        self.sinks: list = []

    def note(self, frame) -> None:
        picture = frame.data()
        self.frames += 1
        self.height, self.width = picture.shape[:2]
        if self.frames % 10 == 1:
            # The SDK's frames are in the order blue, green, red.
            middle = picture[self.height // 4 : self.height // 2, : self.width // 4].reshape(-1, 3).mean(axis=0)
            self.colour = [int(value) for value in middle[::-1]]

    def listen(self) -> None:
        for sink in self.sinks:
            if not isinstance(sink, SoraAudioSink):
                continue
            got, samples = sink.read()
            if got and samples is not None and samples.size and int(numpy.abs(samples).max()) > 1000:
                self.loud += 1

    def shown(self) -> dict:
        return {
            "frames": self.frames,
            "width": self.width,
            "height": self.height,
            "loud": self.loud,
            "colour": self.colour,
            "kinds": sorted(self.kinds),
            "live": sum("LIVE" in str(track.state).upper() for track in self.tracks),
        }


class Member:
    """One connection."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.streams: dict[str, Stream] = {}
        self.lock = threading.Lock()
        self.speaking = not options.silent
        self.ended = threading.Event()
        self.sora = Sora(openh264=options.openh264) if options.openh264 else Sora()
        sends = options.role != "recvonly"
        self.audio = self.sora.create_audio_source(1, RATE) if sends and options.audio else None
        self.video = self.sora.create_video_source() if sends and options.video else None
        settings: dict = {
            "signaling_urls": [options.url],
            "role": options.role,
            "channel_id": options.channel,
            "audio": options.audio,
            "video": options.video,
        }
        if self.audio:
            settings["audio_source"] = self.audio
        if self.video:
            settings["video_source"] = self.video
        for name in (
            "client_id", "bundle_id", "video_codec_type", "video_bit_rate", "simulcast", "simulcast_rid",
            "spotlight", "spotlight_number", "spotlight_focus_rid", "spotlight_unfocus_rid",
            "data_channel_signaling", "ignore_disconnect_websocket",
        ):  # fmt: skip
            if getattr(options, name) is not None:
                settings[name] = getattr(options, name)
        for name in ("metadata", "signaling_notify_metadata", "forwarding_filters", "data_channels"):
            if getattr(options, name) is not None:
                settings[name] = json.loads(getattr(options, name))
        if options.ca_cert:
            settings["ca_cert"] = Path(options.ca_cert).read_bytes()
        self.connection = self.sora.create_connection(**settings)
        self.connection.on_set_offer = self.on_set_offer
        self.connection.on_notify = self.on_notify
        self.connection.on_track = self.on_track
        self.connection.on_disconnect = self.on_disconnect
        self.connection.on_ws_close = self.on_ws_close
        self.connection.on_switched = self.on_switched
        self.connection.on_data_channel = self.on_data_channel
        self.connection.on_message = self.on_message
        self.connection.on_push = self.on_push
        self.connection.on_rpc = self.on_rpc

    # An exception in a callback would end the process.
    def guarded(self, work) -> None:
        try:
            work()
        except Exception as error:
            report("failed", error=repr(error))

    def on_set_offer(self, text: str) -> None:
        self.guarded(lambda: report("offer", **{key: value for key, value in json.loads(text).items() if key != "type"}))

    def on_notify(self, text: str) -> None:
        self.guarded(lambda: report("notify", **json.loads(text)))

    def on_track(self, track) -> None:
        self.guarded(lambda: self.add(track))

    def on_disconnect(self, code, message: str) -> None:
        self.guarded(lambda: report("disconnected", code=str(code), message=message))
        self.ended.set()

    def on_ws_close(self, code: int, reason: str) -> None:
        self.guarded(lambda: report("closed", code=code, reason=reason))

    def on_switched(self, text: str) -> None:
        self.guarded(lambda: report("switched", **{key: one for key, one in json.loads(text).items() if key != "type"}))

    def on_data_channel(self, label: str) -> None:
        self.guarded(lambda: report("channel", label=label))

    def on_message(self, label: str, data: bytes) -> None:
        self.guarded(lambda: report("message", label=label, text=data.decode()))

    def on_push(self, text: str) -> None:
        self.guarded(lambda: report("push", data=json.loads(text)["data"]))

    def on_rpc(self, data: bytes) -> None:
        self.guarded(lambda: report("rpc", response=json.loads(data)))

    def add(self, track) -> None:
        with self.lock:
            stream = self.streams.setdefault(track.stream_id, Stream())
            stream.tracks.append(track)
            stream.kinds.append(track.kind)
            if track.kind == "video":
                sink = SoraVideoSink(track)
                sink.on_frame = lambda frame: self.guarded(lambda: stream.note(frame))
            else:
                sink = SoraAudioSink(track, RATE, 1)
            stream.sinks.append(sink)
        report("track", stream=track.stream_id, kind=track.kind)

    def report_stats(self) -> None:
        with self.lock:
            for stream in self.streams.values():
                stream.listen()
            shown = {name: stream.shown() for name, stream in self.streams.items()}
        report("stats", streams=shown)

    # What is sent.

    def send_video(self) -> None:
        width, height = (int(part) for part in self.options.size.split("x"))
        picture = numpy.empty((height, width, 3), dtype=numpy.uint8)
        picture[:] = COLOURS[self.options.colour][::-1]
        noise = numpy.random.default_rng(1).integers(0, 80, (height, width // 2, 1), dtype=numpy.uint8)
        count = 0
        began = time.monotonic()
        while not self.ended.is_set():
            picture[:, width // 2 :] = numpy.roll(noise, count * 8, axis=0)
            self.video.on_captured(picture)
            count += 1
            time.sleep(max(0.0, began + count / FPS - time.monotonic()))

    def send_audio(self) -> None:
        samples = RATE // 100
        position = 0
        began = time.monotonic()
        while not self.ended.is_set():
            times = (numpy.arange(samples) + position) / RATE
            level = 9000 if self.speaking else 0
            self.audio.on_data((numpy.sin(times * 2 * math.pi * 440) * level).astype(numpy.int16).reshape(-1, 1))
            position += samples
            time.sleep(max(0.0, began + position / RATE - time.monotonic()))

    def run(self) -> None:
        self.connection.connect()
        for source, work in ((self.video, self.send_video), (self.audio, self.send_audio)):
            if source:
                threading.Thread(target=work, daemon=True).start()
        threading.Thread(target=self.watch, daemon=True).start()
        for line in sys.stdin:
            command = line.strip()
            if command in ("unmute", "mute"):
                self.speaking = command == "unmute"
            elif command.startswith("send "):
                _, label, text = command.split(" ", 2)
                if not self.connection.send_data_channel(label, text.encode()):
                    report("failed", error=f"{label} does not send")
        began = time.monotonic()
        if not self.ended.is_set():
            self.connection.disconnect()
        finished = self.ended.wait(10)
        seconds = time.monotonic() - began
        self.report_stats()
        report("ended", finished=finished, seconds=seconds)

    def watch(self) -> None:
        while not self.ended.is_set():
            self.guarded(self.report_stats)
            time.sleep(0.25)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["sendonly", "recvonly", "sendrecv"])
    parser.add_argument("url")
    parser.add_argument("channel")
    parser.add_argument("--no-audio", dest="audio", action="store_false")
    parser.add_argument("--no-video", dest="video", action="store_false")
    parser.add_argument("--colour", choices=COLOURS, default="grey")
    parser.add_argument("--size", default="640x360")
    parser.add_argument("--silent", action="store_true")
    parser.add_argument("--openh264")
    parser.add_argument("--ca-cert")
    for name in ("client-id", "bundle-id", "video-codec-type", "simulcast-rid", "spotlight-focus-rid",
                 "spotlight-unfocus-rid", "metadata", "signaling-notify-metadata", "forwarding-filters",
                 "data-channels"):  # fmt: skip
        parser.add_argument(f"--{name}")
    for name in ("video-bit-rate", "spotlight-number"):
        parser.add_argument(f"--{name}", type=int)
    for name in ("simulcast", "spotlight", "data-channel-signaling", "ignore-disconnect-websocket"):
        parser.add_argument(f"--{name}", action="store_const", const=True)
    return parser.parse_args()


if __name__ == "__main__":
    Member(arguments()).run()
    sys.stdout.flush()
    os._exit(0)
