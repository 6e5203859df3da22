"""WHIP and WHEP clients that use the servers of the response's Link fields, and choose among the kinds of candidates."""

from __future__ import annotations

from typing import Any

from .page import Page
from .waiting import wait_until

START = """async (path, policy, pattern) => {
  const connection = new RTCPeerConnection({ bundlePolicy: 'max-bundle' });
  const video = Object.assign(document.createElement('video'), { autoplay: true, muted: true });
  if (path.startsWith('/whip/')) {
    video.srcObject = await navigator.mediaDevices.getUserMedia({ audio: true, video: { width: 640, height: 360 } });
    for (const track of video.srcObject.getTracks()) {
      connection.addTransceiver(track, { direction: 'sendonly', streams: [video.srcObject] });
    }
  } else {
    connection.addTransceiver('video', { direction: 'recvonly' });
    connection.addTransceiver('audio', { direction: 'recvonly' });
    video.srcObject = new MediaStream(connection.getReceivers().map((one) => one.track));
  }
  document.body.append(video);
  const offer = await connection.createOffer();
  const response = await fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/sdp' },
    body: offer.sdp });
  if (response.status !== 201) return { status: response.status };
  const field = (text, name) => new RegExp(`${name}="([^"]*)"`).exec(text)?.[1];
  const iceServers = (response.headers.get('Link') ?? '').split(/, (?=<)/).filter((one) => field(one, 'rel') === 'ice-server')
    .map((one) => ({ urls: /<([^>]*)>/.exec(one)[1], username: field(one, 'username'),
      credential: field(one, 'credential') })).filter((one) => one.urls.includes(pattern));
  connection.setConfiguration({ bundlePolicy: 'max-bundle', iceServers, iceTransportPolicy: policy });
  const errors = [];
  connection.onicecandidateerror = ({ errorCode, errorText, url }) => errors.push(`${errorCode} ${errorText} ${url}`);
  window.viewer = { connection, video, errors, iceServers };
  await connection.setLocalDescription(offer);
  const lines = (await response.text()).split('\\r\\n');
  const answer = lines.filter((one) => !one.startsWith('a=candidate:') || new RegExp(window.allowed ?? '.').test(one));
  await connection.setRemoteDescription({ type: 'answer', sdp: answer.join('\\r\\n') });
  return { status: response.status, iceServers, location: response.headers.get('Location') };
}"""

LOOK = """async () => {
  const { connection, errors } = window.viewer;
  const numbers = { state: connection.connectionState, ice: connection.iceConnectionState, errors };
  const report = await connection.getStats();
  for (const one of report.values()) {
    if (one.type === 'inbound-rtp' && one.kind === 'video') {
      Object.assign(numbers, { frames: one.framesDecoded, freezes: one.freezeCount, lost: one.packetsLost,
        keyFrames: one.keyFramesDecoded });
    }
    if (one.type === 'outbound-rtp' && one.kind === 'video') numbers.frames = one.framesSent;
    if (one.type === 'transport') {
      const pair = report.get(one.selectedCandidatePairId);
      const local = report.get(pair?.localCandidateId);
      const remote = report.get(pair?.remoteCandidateId);
      Object.assign(numbers, { local: local?.candidateType, relay: local?.relayProtocol, protocol: local?.protocol,
        remoteProtocol: remote?.protocol, remoteType: remote?.candidateType, remoteAddress: remote?.address });
    }
  }
  return numbers;
}"""


class RelayViewer:
    """One peer connection that watches the current publisher of a channel."""

    protocol = "whep"

    def __init__(self, page: Page, channel: str, policy: str = "all", server: str = "", candidates: str = ".") -> None:
        """`server` is part of the TURN URLs that are used; `candidates` a pattern of the candidate lines that are kept."""
        self.page = page
        page.goto(page.origin + "/nagare.d.ts")
        page.evaluate(f"window.allowed = {candidates!r}")
        self.answer = page.call(START, f"/{self.protocol}/{channel}", policy, server)
        assert self.answer["status"] == 201, self.answer

    def look(self) -> dict[str, Any]:
        return self.page.call(LOOK)

    def watches(self, frames: int = 30, seconds: float = 15) -> dict[str, Any]:
        """Waits until so many more frames are decoded, or sent; the numbers then."""
        before = self.look().get("frames") or 0

        def look() -> dict[str, Any] | None:
            numbers = self.look()
            return numbers if (numbers.get("frames") or 0) >= before + frames else None

        return wait_until(look, "frames", seconds, describe=self.look)


class RelayPublisher(RelayViewer):
    """One peer connection that publishes in a channel. Its frames are those that it has sent."""

    protocol = "whip"
