package import Base
package import MediaTypes
package import Wire

/// A track made on this side rather than received: what a client publishes. Slots play it like any other, so its
/// retransmissions, reports and key frame requests are the server's own code.
package final class LocalSource {
    package let track: ReceivedTrack
    let stream: ReceivedStream
    private let clock = PeerClock()
    /// The core whose slots play the source.
    var core: Forwarder?

    /// - Parameters:
    ///   - id: names the track; its peer need not exist.
    ///   - streamID: unique in the core that will play it.
    package init(id: TrackID, parameters: ReceiveTrackParameters, streamID: StreamID, at now: Instant) {
        track = ReceivedTrack(id: id, parameters: parameters, clockOffset: clock)
        let ssrc = parameters.ssrcs.first ?? SSRC(rawValue: 1)
        stream = ReceivedStream(
            id: streamID,
            ssrc: ssrc,
            rid: nil,
            track: track,
            historyBytesMax: PacketHistory.bytesMax,
            at: now
        )
        track.add(stream, at: now)
    }

    /// Ties timestamps to the time they were captured at, for sender reports.
    package func noteCapture(_ timestamp: RTPTimestamp, ntp: NTPTimestamp) {
        stream.clock.receivedReport(senderNanoseconds: ntp.nanoseconds, timestamp: timestamp)
        clock.receivedReport(senderNanoseconds: ntp.nanoseconds, ourNanoseconds: ntp.nanoseconds)
    }

    /// Hands one whole RTP packet to every slot that plays the track, which send it at the end of the turn; a malformed
    /// one is dropped, as is one before the source was connected to a slot.
    package func send(_ packet: RawSpan, at now: Instant, into batch: DatagramBatch) {
        guard let view = try? RTPPacketView(packet), let codec = track.codec(of: view.payloadType) else { return }
        let sequence = stream.unwrapper.unwrap(view.sequenceNumber)
        guard
            let description = PacketDescription(
                view,
                sequence: sequence,
                codec: codec.name,
                extensions: track.parameters.extensions,
                templates: stream.templates,
                at: now
            ),
            let core,
            track.take(packet, description, of: stream, core: core, into: batch)
        else { return }
        stream.noteArrival(description, bytes: packet.byteCount, at: now)
        if description.startsKeyFrame {
            stream.noteKeyFrameStart(description)
            stream.keyFrames.receivedKeyFrame(at: now)
        }
    }

    /// Whether a receiver wants a key frame now; asking counts as having been told.
    package func takeKeyFrameRequest(at now: Instant) -> Bool { stream.keyFrames.takeRequest(at: now) }
}
