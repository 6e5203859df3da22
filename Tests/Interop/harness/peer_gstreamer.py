"""GStreamer's webrtcbin as publisher or viewer. Runs with the system's Python, which has GStreamer's bindings.

With `--label` it has a data channel, over usrsctp: it sends each line of its standard input as a message, and reports the
messages that it gets.
"""

from __future__ import annotations

import sys
import threading

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstWebRTC", "1.0")
gi.require_version("GstSdp", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC  # noqa: E402

from .peer_common import HTTPSession, parser, report  # noqa: E402

ENCODERS = {
    "VP8": "vp8enc deadline=1 cpu-used=8 keyframe-max-dist=300 target-bitrate=800000 ! rtpvp8pay picture-id-mode=2",
    "H264": "x264enc tune=zerolatency speed-preset=ultrafast key-int-max=300 bitrate=800"
    " ! video/x-h264,profile=constrained-baseline ! rtph264pay config-interval=-1 aggregate-mode=zero-latency",
}
FORMATS = {
    "VP8": "application/x-rtp,media=video,encoding-name=VP8,payload=96,clock-rate=90000",
    "H264": "application/x-rtp,media=video,encoding-name=H264,payload=96,clock-rate=90000,"
    "packetization-mode=(string)1,profile-level-id=(string)42e01f",
}
# The payloader sets the profile that the encoder chose.
SENT_FORMATS = {"VP8": FORMATS["VP8"], "H264": FORMATS["H264"].rpartition(",profile-level-id")[0]}
DECODERS = {"VP8": "rtpvp8depay ! vp8dec", "H264": "rtph264depay ! avdec_h264"}
OPUS = "application/x-rtp,media=audio,encoding-name=OPUS,payload=97,clock-rate=48000,encoding-params=(string)2"
LOUD_DECIBELS = -40.0


class WebRTCPeer:
    """One webrtcbin with its session."""

    def __init__(self, role: str, codec: str, label: str | None, session: HTTPSession, loop: GLib.MainLoop) -> None:
        self.session = session
        self.loop = loop
        self.failure: str | None = None
        self.frames = self.width = self.height = self.loud = self.audio = self.packets_sent = 0
        if role == "publish":
            self.pipeline = Gst.parse_launch(self._publisher(codec))
        else:
            self.pipeline = Gst.Pipeline.new("viewer")
            viewer = Gst.ElementFactory.make("webrtcbin", "peer")
            viewer.set_property("bundle-policy", GstWebRTC.WebRTCBundlePolicy.MAX_BUNDLE)
            self.pipeline.add(viewer)
        self.peer = self.pipeline.get_by_name("peer")
        self._keep_to_loopback()
        # The main loop runs once the data channel is there, so the offer has it.
        self.peer.connect("on-negotiation-needed", lambda _: GLib.idle_add(self._make_offer))
        self.peer.connect("notify::ice-gathering-state", self._follow_gathering)
        self.peer.connect("notify::connection-state", self._follow_connection)
        self.peer.connect("pad-added", self._take_pad)
        bus = self.pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message", self._take_message)
        direction = GstWebRTC.WebRTCRTPTransceiverDirection
        if role == "watch":
            transceivers = [
                self.peer.emit("add-transceiver", direction.RECVONLY, Gst.Caps.from_string(caps))
                for caps in (FORMATS[codec], OPUS)
            ]
        else:
            transceivers = [self.peer.emit("get-transceiver", index) for index in range(2)]
            for one in transceivers:
                one.set_property("direction", direction.SENDONLY)
        # Retransmission for video only, as in browsers.
        transceivers[0].set_property("do-nack", True)
        if label:
            self.pipeline.set_state(Gst.State.READY)
            self.channel = self.peer.emit("create-data-channel", label, None)
            self.channel.connect("on-open", lambda _: report("opened"))
            self.channel.connect("on-message-string", lambda _, text: report("message", text=text))
            self.channel.connect("on-message-data", lambda _, data: report("message", text=data.get_data().decode()))

    def send(self, text: str) -> None:
        """Sends a message over the data channel."""
        self.channel.emit("send-string", text)

    @staticmethod
    def _publisher(codec: str) -> str:
        return (
            "webrtcbin name=peer bundle-policy=max-bundle "
            "videotestsrc is-live=true pattern=ball ! video/x-raw,width=640,height=360,framerate=30/1,format=I420 "
            f"! {ENCODERS[codec]} ! {SENT_FORMATS[codec]} ! queue ! peer. "
            "audiotestsrc is-live=true wave=sine freq=440 volume=0.3 ! audio/x-raw,rate=48000,channels=2 "
            f"! opusenc ! rtpopuspay ! {OPUS} ! queue ! peer."
        )

    def _keep_to_loopback(self) -> None:
        """libnice binds a socket to the interface of its address, so only one on 127.0.0.1 reaches the node."""
        # Keep this reference: that of the bin is a floating one, which Python takes over.
        self.ice = self.peer.get_property("ice-agent")
        self.ice.emit("add-local-ip-address", "127.0.0.1")
        self.ice.get_property("agent").set_property("upnp", False)

    def start(self) -> None:
        self.pipeline.set_state(Gst.State.PLAYING)

    def _make_offer(self) -> None:
        def made(promise: Gst.Promise) -> None:
            reply = promise.get_reply()
            offer = reply.get_value("offer")
            self.peer.emit("set-local-description", offer, None)

        self.peer.emit("create-offer", None, Gst.Promise.new_with_change_func(made))

    def _follow_gathering(self, *_: object) -> None:
        if self.peer.get_property("ice-gathering-state") == GstWebRTC.WebRTCICEGatheringState.COMPLETE:
            threading.Thread(target=self._negotiate, daemon=True).start()

    def _negotiate(self) -> None:
        try:
            offer = self.peer.get_property("local-description").sdp.as_text()
            result, message = GstSdp.SDPMessage.new_from_text(self.session.post(offer))
            assert result == GstSdp.SDPResult.OK, result
        except Exception as error:
            self.failure = repr(error)
            GLib.idle_add(self.loop.quit)
            return
        answer = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, message)
        self.peer.emit("set-remote-description", answer, None)

    def _follow_connection(self, *_: object) -> None:
        report(self.peer.get_property("connection-state").value_nick)

    def _take_pad(self, _: Gst.Element, pad: Gst.Pad) -> None:
        if pad.get_direction() != Gst.PadDirection.SRC:
            return
        format = pad.get_current_caps().get_structure(0)
        media = format.get_string("media")
        if media == "video":
            decoder = DECODERS[format.get_string("encoding-name")]
            chain = f"{decoder} ! fakesink name=seen sync=false signal-handoffs=true"
        else:
            chain = "rtpopusdepay ! opusdec ! audioconvert ! level interval=100000000 ! fakesink sync=false"
        branch = Gst.parse_bin_from_description(f"queue ! {chain}", True)
        if media == "video":
            branch.get_by_name("seen").connect("handoff", self._see)
        self.pipeline.add(branch)
        branch.sync_state_with_parent()
        pad.link(branch.get_static_pad("sink"))

    def _see(self, _: Gst.Element, __: Gst.Buffer, pad: Gst.Pad) -> None:
        self.frames += 1
        structure = pad.get_current_caps().get_structure(0)
        self.width, self.height = structure.get_int("width").value, structure.get_int("height").value

    def _take_message(self, _: Gst.Bus, message: Gst.Message) -> None:
        if message.type == Gst.MessageType.ERROR:
            self.failure = str(message.parse_error())
            self.loop.quit()
        elif message.type == Gst.MessageType.ELEMENT and message.get_structure().get_name() == "level":
            self.audio += 1
            self.loud += int(max(message.get_structure().get_value("rms")) > LOUD_DECIBELS)

    def report_stats(self) -> bool:
        """Reports the latest numbers and requests new ones. The main loop calls this periodically."""

        def counted(promise: Gst.Promise) -> None:
            total = 0
            reply = promise.get_reply()
            for index in range(reply.n_fields()):
                part = reply.get_value(reply.nth_field_name(index))
                if isinstance(part, Gst.Structure) and part.has_field("packets-sent"):
                    total += part.get_uint64("packets-sent").value
            self.packets_sent = total

        self.peer.emit("get-stats", None, Gst.Promise.new_with_change_func(counted))
        report(
            "stats",
            frames=self.frames,
            width=self.width,
            height=self.height,
            audio=self.audio,
            loud=self.loud,
            packets_sent=self.packets_sent,
        )
        return True


def main() -> None:
    options = parser()
    options.add_argument("--label")
    chosen = options.parse_args()
    Gst.init(None)
    loop = GLib.MainLoop()
    session = HTTPSession(chosen.endpoint, chosen.token)
    peer = WebRTCPeer(chosen.role, chosen.codec, chosen.label, session, loop)

    def wait_for_end() -> None:
        for line in sys.stdin:
            peer.send(line.strip())
        GLib.idle_add(loop.quit)

    threading.Thread(target=wait_for_end, daemon=True).start()
    GLib.timeout_add(250, peer.report_stats)
    peer.start()
    loop.run()
    if peer.failure:
        sys.exit(peer.failure)
    status = session.delete()
    peer.pipeline.set_state(Gst.State.NULL)
    report("ended", status=status, frames=peer.frames, loud=peer.loud)


main()
