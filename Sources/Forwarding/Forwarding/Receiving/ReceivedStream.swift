package import Base
import CongestionControl
import MediaTypes
package import Wire

/// One RTP stream that a peer sends: one SSRC, audio or one layer of video, with everything that belongs to it alone.
package final class ReceivedStream {
    package let id: StreamID
    package let ssrc: SSRC
    /// The simulcast layer; `nil` without simulcast.
    package let rid: RID?
    /// The track that the stream is of, which outlives it, as packets find it.
    let owner: Unretained<ReceivedTrack>
    package var track: ReceivedTrack { owner.object }
    /// The SSRC that repeats this one's packets (RFC 4588), once known.
    package var rtxSSRC: SSRC?

    /// The stream's place among its track's layers; 255 without layers.
    let layer: UInt8
    /// Of a mirror's stream: its number where it is received, and when its origin was last asked for a key frame.
    var originID: UInt64 = 0
    private var askedOriginAt: Instant?
    /// Of a mirror's stream: when its origin was last asked for a repair that has not come.
    private var repairAskedAt: Instant?
    private var clockTransferredAt: Instant?

    private let clockRate: Int
    /// Of the newest packet.
    private var newestTimestamp: (sequence: ExtendedSequenceNumber, timestamp: RTPTimestamp)?
    /// What the payload type of the newest packet means.
    private var newestFormat: ReceivedFormat?

    package let history: PacketHistory
    /// What the packets' dependency descriptors refer to.
    private let dependencyTemplates = DependencyTemplates()
    var templates: Unretained<DependencyTemplates> { Unretained(dependencyTemplates) }
    package var unwrapper = SequenceUnwrapper()
    package var statistics: ReceiveStatistics
    package var losses = NACKTracker()
    package var keyFrames = KeyFrameRequester()
    package var clock: SenderClock
    /// Whether the stream is shed because its peer publishes more than it may, or for an overload.
    var shedding = Shedding()
    /// For the "last SR" fields of our reports: the middle 32 bits of its NTP time, and when it came.
    package var lastSenderReport: (middle: UInt32, receivedAt: Instant)?
    /// When the newest packet came that was not mere padding.
    package var lastPacketAt: Instant { unsafe newestPacketAt }
    /// Every packet sets it, in one step, so accesses are not checked.
    @exclusivity(unchecked) private var newestPacketAt: Instant
    /// Media bits in the second before the last `measure`.
    package private(set) var bitrate = 0
    /// Bit/s that the stream carries while it flows. A pause does not lower it, so layers keep their ranks.
    package private(set) var typicalBitrate = 0
    /// The bit rates and sizes of its spatial and temporal layers, smoothed as `typicalBitrate` is.
    private(set) var layers = EncodingLayers()
    /// The first packet of the newest key frame, and when it came.
    private var keyFrame: (sequence: ExtendedSequenceNumber, timestamp: RTPTimestamp, at: Instant)?
    /// Of the key frame that began to arrive last; `nil` before the first.
    private(set) var keyFrameTimestamp: RTPTimestamp?
    /// Bytes of the newest key frame that was measured; 0 before the first.
    private(set) var keyFrameBytes = 0
    private var measuredKeyFrame: ExtendedSequenceNumber?
    /// Bits a second of key frames, averaged over some eight seconds.
    private var keyFrameBits = 0
    /// The timestamp of the newest frame whose content type is screenshare.
    private var screenTimestamp: RTPTimestamp?
    /// Bytes of each layer since the last `measure`.
    private var layerBytes: [16 of UInt32] = .init(repeating: 0)
    /// Requests for a key frame that were sent.
    package var keyFrameRequests: UInt64 = 0
    package var bytesReceived: UInt64 { unsafe byteCount }
    /// Every packet adds to it, in one step, so accesses are not checked.
    @exclusivity(unchecked) private var byteCount: UInt64 = 0
    /// Shed ones included.
    var packetsReceived: UInt64 = 0
    /// Of `packetsReceived`: those before an overload was last measured.
    var packetsAtMeasure: UInt64 = 0
    private var bytesAtMeasure: UInt64 = 0
    private var measuredAt: Instant
    /// When its first packet arrived.
    let beganAt: Instant

    /// - Parameter historyBytesMax: what its history may grow to; 0 keeps no packets.
    package init(
        id: StreamID,
        ssrc: SSRC,
        rid: RID?,
        track: ReceivedTrack,
        historyBytesMax: Int,
        at now: Instant
    ) {
        self.id = id
        self.ssrc = ssrc
        self.rid = rid
        owner = Unretained(track)
        layer = rid.flatMap { track.parameters.rids.firstIndex(of: $0) }.map { UInt8(clamping: $0) } ?? .max
        clockRate = track.parameters.codecs.first?.clockRate ?? track.parameters.kind.clockRate
        let limit = track.parameters.kind == .video ? PacketHistory.bytesMax : Self.audioHistoryBytesMax
        history = PacketHistory(bytesLimit: min(limit, historyBytesMax))
        statistics = ReceiveStatistics(clockRate: clockRate)
        clock = SenderClock(clockRate: clockRate)
        unsafe newestPacketAt = now
        measuredAt = now
        beganAt = now
    }

    /// Without a packet for this long a stream no longer counts as flowing. Screen sharing and DTX still send within
    /// it.
    static let silenceMax = Interval.seconds(2)

    package func isFlowing(at now: Instant) -> Bool { bytesReceived > 0 && now - lastPacketAt < Self.silenceMax }

    /// Two seconds of the richest audio.
    private static let audioHistoryBytesMax = 64 * 1024

    /// What a payload type means on this stream, looked up when it changes; `nil` when it was not negotiated.
    @inline(__always)
    func format(of payloadType: PayloadType, in track: ReceivedTrack) -> ReceivedFormat? {
        if let newestFormat, newestFormat.payloadType == payloadType { return newestFormat }
        guard let codec = track.codec(of: payloadType) else { return nil }
        newestFormat = ReceivedFormat(
            payloadType: payloadType,
            codec: codec.name,
            isNACKed: codec.feedback.contains(.nack)
        )
        return newestFormat
    }

    /// Asks the sender for a key frame of this stream.
    func wantKeyFrame(at now: Instant) {
        guard let origin = track.origin else {
            keyFrames.want(at: now)
            return
        }
        // A slot without a picture asks again while none comes.
        if let askedOriginAt, now - askedOriginAt < TransferOrigin.requestSpacing { return }
        if origin.requestKeyFrame(of: originID) { askedOriginAt = now }
    }

    /// Asks the sender for a key frame for somebody who played the stream already, within the budget of all such
    /// requests.
    /// - Returns: whether the request need not wait, as far as is known here.
    func wantRepair(at now: Instant) -> Bool {
        guard let origin = track.origin else { return keyFrames.wantRepair(at: now) }
        repairAskedAt = now
        origin.requestRepair(of: originID)
        return true
    }

    /// Asks the origin again for a repair that is late, because the link may have lost the request, and the viewer's budget
    /// passes on the next one only seconds later.
    func repeatRepair(at now: Instant) {
        guard let origin = track.origin, let repairAskedAt, now - repairAskedAt >= Self.repairPatience else { return }
        if isFlowing(at: now) { origin.requestRepair(of: originID) } else { self.repairAskedAt = nil }
    }

    /// A key frame that was asked for comes within it over most paths.
    private static let repairPatience = Interval.milliseconds(500)

    /// Whether a sender report is passed on to other loops now. Browsers send one a second at most.
    func mayTransferClock(at now: Instant) -> Bool {
        guard !track.exports.isEmpty else { return false }
        if let clockTransferredAt, now - clockTransferredAt < Self.clockSpacing { return false }
        clockTransferredAt = now
        return true
    }

    private static let clockSpacing = Interval.milliseconds(200)

    /// Compares a packet's timestamp with that of the newest one before it. After a jump every slot begins a new segment, by
    /// what it sent itself.
    @inline(__always)
    func noteTimestamp(_ description: inout PacketDescription) {
        guard let newest = newestTimestamp else {
            newestTimestamp = (description.sequence, description.timestamp)
            return
        }
        guard description.sequence > newest.sequence else { return }
        newestTimestamp = (description.sequence, description.timestamp)
        let step = newest.timestamp.distance(to: description.timestamp)
        // The longest plain step: a frame, or a pause of some seconds.
        guard UInt(bitPattern: step &+ clockRate) > UInt(bitPattern: 11 &* clockRate) else { return }
        description.isPlain = false
    }

    /// Counts a packet. One that is padding only, by which a sender probes its path, does not make the stream flow.
    @inline(__always)
    package func noteArrival(_ description: PacketDescription, bytes: Int, at now: Instant) {
        unsafe byteCount &+= UInt64(bytes)
        guard description.payloadLength > 0 else { return }
        unsafe newestPacketAt = now
        let index = EncodingLayers.index(spatialID: description.spatialID, temporalID: description.temporalID)
        layerBytes[index] &+= UInt32(truncatingIfNeeded: bytes)
    }

    /// A key frame began to arrive. Several of its packets may begin it, parameter sets and each slice of H.264.
    func noteKeyFrameStart(_ description: PacketDescription) {
        keyFrameTimestamp = description.timestamp
        repairAskedAt = nil
        if let keyFrame {
            let isNewer = description.sequence > keyFrame.sequence
            guard description.timestamp == keyFrame.timestamp ? !isNewer : isNewer else { return }
        }
        keyFrame = (description.sequence, description.timestamp, description.receivedAt)
    }

    /// The first packet of the newest key frame, where it came after an instant and all packets since then are kept.
    /// - Parameter bytesMax: what may have come after it.
    func beginning(since instant: Instant, bytesMax: Int) -> ExtendedSequenceNumber? {
        guard let keyFrame, keyFrame.at > instant,
            history.keepsAll(from: keyFrame.sequence, of: keyFrame.timestamp, bytesAfterMax: bytesMax)
        else { return nil }
        return keyFrame.sequence
    }

    /// Takes the first packet of a key frame, and the sizes that it names.
    func noteKeyFrame(_ description: PacketDescription, _ payload: RawSpan, codec: CodecName) {
        noteKeyFrameStart(description)
        for (spatialID, size) in dependencyTemplates.resolutions.enumerated() {
            layers.setSize(ofSpatial: spatialID, width: size.width, height: size.height)
        }
        switch codec {
        case .vp8:
            guard let size = VP8PayloadDescriptor.keyFrameSize(payload) else { return }
            layers.setSize(ofSpatial: 0, width: size.width, height: size.height)
        case .vp9:
            guard let structure = VP9PayloadDescriptor(payload)?.scalabilityStructure, let width = structure.width,
                let height = structure.height
            else { return }
            layers.setSize(ofSpatial: structure.spatialLayerCount - 1, width: Int(width), height: Int(height))
        default: break
        }
    }

    /// A key frame is complete after this time, retransmissions included.
    static let keyFrameTimeMax = Interval.milliseconds(500)

    /// When the newest key frame came, and whether its content type is screenshare as far as it came.
    var newestKeyFrameContent: (at: Instant, isScreen: Bool)? {
        keyFrame.map { ($0.at, $0.timestamp == screenTimestamp) }
    }

    /// Takes a packet whose content type is screenshare.
    func noteScreenContent(_ description: PacketDescription) { screenTimestamp = description.timestamp }

    /// Adds up the packets of the newest key frame that the history has.
    private func measureKeyFrame(at now: Instant) {
        guard let keyFrame, keyFrame.sequence != measuredKeyFrame, now - keyFrame.at >= Self.keyFrameTimeMax else {
            return
        }
        measuredKeyFrame = keyFrame.sequence
        let bytes = history.frameBytes(from: keyFrame.sequence, keyFrame.timestamp)
        if bytes > 0 { keyFrameBytes = bytes }
    }

    /// Of a mirror's stream: takes the size of a key frame that the origin measured.
    func noteKeyFrameBytes(_ bytes: Int) { keyFrameBytes = bytes }

    /// Bit/s of a stream of video that was not measured yet.
    static let presumedBitrate = 1_000_000

    /// Bit/s that the stream carries while it flows, as far as that is known.
    var expectedBitrate: Int { typicalBitrate > 0 ? typicalBitrate : max(rateNow, Self.presumedBitrate) }

    /// Of a mirror's stream: takes the dependency structure of a key frame that its origin parsed.
    func noteMirroredStructure(_ packet: RawSpan, _ description: PacketDescription) {
        guard description.dependencyDescriptor.isPresent else { return }
        let descriptor = packet.extracting(description.dependencyDescriptor.range)
        dependencyTemplates.readStructure(descriptor, of: description.sequence)
    }

    /// Media bits a second by the newest measurement, or since then where that says more: a stream may have just begun.
    var rateNow: Int { max(bitrate, Int(truncatingIfNeeded: bytesReceived &- bytesAtMeasure) * 8) }

    package func measureBitrate(at now: Instant) {
        let elapsed = (now - measuredAt).nanoseconds
        // The burst of a layer's first key frame, measured by itself, would make the smallest layer look the richest.
        guard elapsed >= 500_000_000 else { return }
        let bits = Int(truncatingIfNeeded: bytesReceived &- bytesAtMeasure) * 8
        bitrate = Int(Double(bits) / (Double(elapsed) / 1e9))
        let keyFrame = newKeyFrameBits(atMost: bits)
        bytesAtMeasure = bytesReceived
        measuredAt = now
        measureKeyFrame(at: now)
        // The second in which a stream stops tells little of it.
        guard bits > 0 else { return }
        keyFrameBits += (keyFrame - keyFrameBits) / 8
        let steady = bits - keyFrame + keyFrameBits
        typicalBitrate = max(Int(Double(steady) / (Double(elapsed) / 1e9)), typicalBitrate / 8 * 7)
        measureLayers(elapsed: elapsed, extraBits: keyFrameBits - keyFrame)
    }

    /// Bits of the newest key frame, as far as it came since the last measurement. One that was asked for says little of the seconds
    /// after it: with it a layer seems to cost a fifth more than it does, and is taken from a path that carries it.
    private func newKeyFrameBits(atMost bits: Int) -> Int {
        guard let keyFrame, keyFrame.at > measuredAt else { return 0 }
        return min(history.frameBytes(from: keyFrame.sequence, keyFrame.timestamp) * 8, bits)
    }

    /// - Parameter extraBits: what the lowest temporal layers, which the key frames are in, are to be taken for more than they were.
    private func measureLayers(elapsed: Int64, extraBits: Int) {
        var base = 0
        for spatialID in 0..<EncodingLayers.spatialMax {
            base += Int(layerBytes[spatialID * EncodingLayers.temporalMax]) * 8
        }
        let factor = base > 0 ? max(0, Double(base + extraBits) / Double(base)) : 1
        for index in 0..<(EncodingLayers.spatialMax * EncodingLayers.temporalMax) {
            let isBase = index % EncodingLayers.temporalMax == 0
            let rate = Int(Double(layerBytes[index]) * (isBase ? factor : 1) * 8e9 / Double(elapsed))
            layers[index] = max(rate, layers[index] / 8 * 7)
            layerBytes[index] = 0
        }
    }

    /// Of a mirror's stream: takes the bit rate that the origin reports; 0 while the stream does not flow there.
    func noteBitrate(_ bitsPerSecond: Int) {
        bitrate = bitsPerSecond
        if bitsPerSecond > 0 { typicalBitrate = bitsPerSecond }
    }

    /// The earliest time that the stream wants to send feedback of its own.
    package var nextDeadline: Instant? { earliest(losses.nextDeadline, keyFrames.nextDeadline) }
}

/// What reading a packet needs of its payload format.
struct ReceivedFormat: BitwiseCopyable, Sendable {
    let payloadType: PayloadType
    let codec: CodecName
    /// Missing packets are asked for.
    let isNACKed: Bool
}

extension MediaKind {
    /// RTP clock in Hz of every codec of the kind that we negotiate.
    package var clockRate: Int { self == .audio ? 48_000 : 90_000 }
}

extension ReceivedStream {
    /// Our report on the stream (RFC 3550 §6.4.1); `nil` before its first packet.
    package func makeReportBlock(at now: Instant) -> ReportBlock? {
        guard let report = statistics.takeReport() else { return nil }
        return ReportBlock(
            ssrc: ssrc,
            fractionLost: report.fractionLost,
            cumulativeLost: report.cumulativeLost,
            highestSequence: report.highest,
            jitter: report.jitter,
            lastSR: lastSenderReport?.middle ?? 0,
            delaySinceLastSR: lastSenderReport.map { (now - $0.receivedAt).compactNTP } ?? 0
        )
    }
}
