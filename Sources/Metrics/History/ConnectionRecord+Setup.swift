import Base
import ChannelTypes
import JSON
import MediaTypes
import Room

// The set-up of a connection: how long its phases took, and where it stopped.

extension ConnectionRecord {
    /// From when on a connection without media is worth a sentence, in seconds.
    private static let silenceMin = 10

    /// The phases that are over, and what is wrong with the set-up.
    var setup: JSONValue {
        var document: [String: JSONValue] = [
            "phases": .array(
                connection.setup.steps.map { step in
                    [
                        "phase": .string(step.phase.rawValue), "start_ms": .integer(step.start.milliseconds),
                        "duration_ms": .integer(step.duration.milliseconds),
                    ]
                }
            )
        ]
        document["finding"] = setupFinding.map { .string($0) }
        return .object(document)
    }

    /// Where the set-up stopped, in a sentence; `nil` for one that is complete, or still under way.
    var setupFinding: String? {
        let media = connection.setup.media
        guard connection.isConnected else { return endedAt == nil ? nil : stop(media) }
        guard duration >= .seconds(Self.silenceMin) else { return nil }
        if connection.member.role.publishes, media.firstPacketReceived == nil, totals.receivedBytes == 0 {
            return "The client never sent a packet of media, although it was connected. Check that it has a microphone "
                + "or a camera, and that its tracks are not muted."
        }
        let onlyWatches = connection.member.role.watches && !connection.member.role.publishes
        if onlyWatches, media.firstPacketSent == nil, totals.sentBytes == 0 {
            return "The client was never sent a packet of media: nobody published what it was to receive, or no codec "
                + "fits both."
        }
        return nil
    }

    /// Why a connection that ended was never connected.
    private func stop(_ media: PeerSetup) -> String {
        guard connection.setup.negotiation != nil else {
            return "The descriptions were never exchanged: the client left, or did not answer the node's offer."
        }
        guard media.firstCheck != nil || media.iceConnected != nil else {
            return "ICE was never connected: no connectivity check of the client reached the node. Often a firewall "
                + "blocks the node's media ports, or the node announces an address that the client cannot reach."
        }
        guard let path = media.iceConnected else {
            return "ICE was never connected: checks of the client arrived, but it selected no pair. Often the node's "
                + "answers do not reach the client."
        }
        guard media.dtlsConnected != nil else {
            return
                "DTLS did not connect: ICE connected after \(path.milliseconds) ms, but the handshake did not finish. "
                + "Often large datagrams are lost on the way, or the certificate is not the one of the description."
        }
        return "ICE and DTLS connected, but the connection ended before the client had joined the channel."
    }
}
