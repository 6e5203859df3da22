import Base
import Client
import MediaTypes
import Negotiation
import Testing
import Wire

@testable import Forwarding

extension World.Host {
    /// The host's only peer.
    var peer: Peer? { client.flatMap { core.peer($0.id) } }

    /// The track of a kind that the host watches.
    func watched(_ kind: MediaKind) -> ReceivedTrack? { peer?.tracks.first { $0.parameters.kind == kind } }
}

extension World {
    /// The node's side of a host's session.
    func nodePeer(_ host: Host) -> Peer? { host.client.flatMap { home(of: host).core.peer($0.id) } }

    /// The node's slot of a kind that plays to a host.
    func nodeSlot(_ host: Host, _ kind: MediaKind) -> SendSlot? {
        nodePeer(host)?.slots.first { $0.parameters.kind == kind }
    }

    /// What a host negotiated to publish of a kind.
    func publishedTrack(_ host: Host, _ kind: MediaKind) -> ReceiveTrackParameters? {
        host.client.flatMap { published[$0.id]?.first { $0.kind == kind } }
    }

    /// Where the node sends to a host.
    func nodePath(_ host: Host) -> TransportAddress? { nodePeer(host)?.transport.selectedPath?.remote }
}

/// Everything that arrived of one watched track, retransmissions restored.
final class Recording {
    struct Packet {
        let sequence: Int64
        let timestamp: RTPTimestamp
        let payloadType: UInt8
        let pictureID: UInt16
        let tl0: UInt8
        let startsKeyFrame: Bool
        let arrivedAt: Instant
        let payload: [UInt8]
        /// `nil` for packets that a test made by hand.
        let stamp: MediaStamp?
    }
    private(set) var packets: [Packet] = []

    init(_ host: World.Host, _ kind: MediaKind) {
        guard let track = host.watched(kind) else { return }
        let previous = track.tap
        let stampOffset = kind == .video ? SyntheticVideo.stampOffset : 0
        track.tap = { [weak self] packet, description, now in
            previous?(packet, description, now)
            let payload = packet.extracting(description.payloadRange)
            let stamp =
                payload.byteCount > stampOffset
                ? MediaStamp(payload.extracting(stampOffset..<payload.byteCount)) : nil
            self?.packets.append(
                Packet(
                    sequence: description.sequence.rawValue,
                    timestamp: description.timestamp,
                    payloadType: description.payloadType.rawValue,
                    pictureID: description.pictureID,
                    tl0: description.tl0,
                    startsKeyFrame: description.startsKeyFrame,
                    arrivedAt: now,
                    payload: payload.array(),
                    stamp: stamp
                )
            )
        }
    }

    var bySequence: [Packet] { packets.sorted { $0.sequence < $1.sequence } }

    /// The longest time between two packets from an instant on.
    func longestGap(from start: Instant) -> Interval {
        let times = packets.map(\.arrivedAt).filter { $0 >= start }
        return zip([start] + times, times).map { $1 - $0 }.max() ?? .seconds(1_000)
    }

    /// What a decoder or jitter buffer would stumble over, in words.
    var flaws: [String] {
        var flaws: [String] = []
        let packets = bySequence
        for (before, after) in zip(packets, packets.dropFirst()) {
            if after.sequence != before.sequence + 1 {
                flaws.append("\(before.sequence) is followed by \(after.sequence)")
            }
            let step = before.timestamp.distance(to: after.timestamp)
            if step < 0 || step > 5 * 90_000 { flaws.append("timestamp step \(step) at \(after.sequence)") }
            let picture = (after.pictureID &- before.pictureID) & 0x7FFF
            if picture != (step == 0 ? 0 : 1) { flaws.append("picture step \(picture) at \(after.sequence)") }
            let layer = after.tl0 &- before.tl0
            if layer != (step == 0 ? 0 : 1) { flaws.append("TL0 step \(layer) at \(after.sequence)") }
            if before.stamp?.source != after.stamp?.source, !after.startsKeyFrame {
                flaws.append("a switch at \(after.sequence), which starts no key frame")
            }
        }
        return flaws
    }
}

extension World {
    /// A publisher whose own media is off, so that a test makes every packet.
    func publishQuietly(
        audio: [CodecParameters] = [.standard(.opus)],
        video: [CodecParameters] = [.standard(.vp8)]
    ) throws -> Host {
        let publisher = try publish(audio: audio, video: video)
        #expect(run(for: .seconds(3)) { publisher.client?.isConnected == true })
        publisher.client?.setSending(false)
        run(for: .milliseconds(200))
        return publisher
    }
}

/// Packets made by hand for one published track, as its publisher would send them.
struct HandMadeStream {
    let ssrc: SSRC
    let mid: MID
    let midID: UInt8?
    let levelID: UInt8?
    let contentTypeID: UInt8?
    var payloadType: UInt8
    var sequence: UInt16 = 1_000
    var timestamp: UInt32 = 50_000

    /// - Returns: `nil` when the host published nothing of the kind.
    init?(_ world: World, _ host: World.Host, _ kind: MediaKind, codec: CodecName, ssrc: UInt32) {
        guard let track = world.publishedTrack(host, kind),
            let codec = track.codecs.first(where: { $0.name == codec })
        else { return nil }
        self.ssrc = SSRC(rawValue: ssrc)
        mid = track.mid
        midID = track.extensions[.mid]?.rawValue
        levelID = track.extensions[.audioLevel]?.rawValue
        contentTypeID = track.extensions[.videoContentType]?.rawValue
        payloadType = codec.payloadType.rawValue
    }

    /// The next packet of the stream; the timestamp moves by `step` first.
    /// - Parameters:
    ///   - level: the audio level extension's byte, if it is to have one.
    ///   - contentType: that of the video content type.
    mutating func next(
        step: UInt32 = 3_000,
        marker: Bool = true,
        level: UInt8? = nil,
        contentType: UInt8? = nil,
        _ payload: [UInt8]
    ) -> [UInt8] {
        sequence &+= 1
        timestamp &+= step
        var bytes: [UInt8] = [midID == nil ? 0x80 : 0x90, (marker ? 0x80 : 0) | payloadType]
        bytes.append(bigEndian: sequence)
        bytes.append(bigEndian: timestamp)
        bytes.append(bigEndian: ssrc.rawValue)
        if let midID {
            let name = Array(mid.value.utf8)
            var block = [midID << 4 | UInt8(name.count - 1)] + name
            if let level, let levelID { block += [levelID << 4, level] }
            if let contentType, let contentTypeID { block += [contentTypeID << 4, contentType] }
            while block.count % 4 != 0 { block.append(0) }
            bytes.append(bigEndian: UInt16(0xBEDE))
            bytes.append(bigEndian: UInt16(block.count / 4))
            bytes += block
        }
        return bytes + payload
    }
}
