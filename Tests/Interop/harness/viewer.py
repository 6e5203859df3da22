"""A WHEP viewer in JavaScript, for tests that the built-in page does not cover."""

from __future__ import annotations

from typing import Any

from .page import Page
from .waiting import wait_until

START = """async (path) => {
  const connection = new RTCPeerConnection({ bundlePolicy: 'max-bundle' });
  connection.addTransceiver('video', { direction: 'recvonly' });
  connection.addTransceiver('audio', { direction: 'recvonly' });
  const video = Object.assign(document.createElement('video'), { autoplay: true });
  video.srcObject = new MediaStream(connection.getReceivers().map((one) => one.track));
  document.body.append(video);
  await connection.setLocalDescription();
  const response = await fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/sdp' },
    body: connection.localDescription.sdp });
  if (response.status !== 201) return response.status;
  window.viewer = { connection, video, location: response.headers.get('Location'), negotiations: 1 };
  connection.onnegotiationneeded = () => { window.viewer.negotiations += 1; };
  await connection.setRemoteDescription({ type: 'answer', sdp: await response.text() });
  return response.status;
}"""

LOOK = """async () => {
  const { connection, negotiations } = window.viewer;
  const numbers = { at: Date.now(), state: connection.connectionState, negotiations };
  const report = await connection.getStats();
  for (const one of report.values()) {
    if (one.type !== 'inbound-rtp') continue;
    if (one.kind === 'audio') {
      Object.assign(numbers, { audioEnergy: one.totalAudioEnergy, audioSamples: one.totalSamplesReceived,
        concealedSamples: one.concealedSamples, audioAt: one.estimatedPlayoutTimestamp });
    } else {
      Object.assign(numbers, { frames: one.framesDecoded, framesReceived: one.framesReceived,
        freezes: one.freezeCount, packetsLost: one.packetsLost,
        width: one.frameWidth, height: one.frameHeight, keyFrames: one.keyFramesDecoded, ssrc: one.ssrc,
        codec: report.get(one.codecId)?.mimeType, videoAt: one.estimatedPlayoutTimestamp });
    }
  }
  if (numbers.videoAt && numbers.audioAt) numbers.skew = numbers.videoAt - numbers.audioAt;
  return numbers;
}"""


class Viewer:
    """One peer connection that watches the current publisher of a channel."""

    def __init__(self, page: Page, channel: str) -> None:
        self.page = page
        page.goto(page.origin + "/")
        status = page.call(START, f"/whep/{channel}")
        assert status == 201, f"WHEP answered {status}"

    def look(self) -> dict[str, Any]:
        return self.page.call(LOOK)

    def wait_for_frames(self, more_than: int, what: str, seconds: float) -> dict[str, Any]:
        """Waits until more than so many frames are decoded."""

        def look() -> dict[str, Any] | None:
            numbers = self.look()
            return numbers if (numbers.get("frames") or 0) > more_than else None

        return wait_until(look, what, seconds, describe=self.look)

    def frames_at_rest(self, seconds: float = 5) -> int:
        """Waits until no more frames arrive; the number of decoded frames."""
        counts: list[int] = []

        def look() -> bool:
            counts.append(self.look().get("frames") or 0)
            return len(counts) > 5 and len(set(counts[-5:])) == 1

        wait_until(look, "an end of the frames", seconds)
        return counts[-1]
