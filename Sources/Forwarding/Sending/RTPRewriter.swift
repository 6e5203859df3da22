package import Wire

/// Identifies one received stream (one SSRC of one peer) within a forwarding core; never used again.
package struct StreamID: Hashable, Sendable {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// Makes the packets of changing sources look to one subscriber like a single unbroken stream: sequence numbers and
/// timestamps, and the picture and frame numbers inside the payload.
///
/// The mapping is a short list of segments, each with constant offsets. A segment begins where a source begins to
/// play or where a packet was left out. Old segments stay for a while, so that late packets and retransmissions map
/// as they did first.
package struct RTPRewriter: Sendable {
    package struct Segment: Sendable {
        package let stream: StreamID
        /// The first source packet that the segment maps.
        package let sourceStart: ExtendedSequenceNumber
        let sequenceOffset: Int64
        let timestampOffset: UInt32
        let pictureIDOffset: UInt16
        let tl0Offset: UInt8
        let frameNumberOffset: UInt16

        /// Whether a packet's payload goes out byte for byte.
        var keepsPayload: Bool { pictureIDOffset == 0 && tl0Offset == 0 }

        @inline(__always)
        package func sequence(_ source: ExtendedSequenceNumber) -> ExtendedSequenceNumber {
            ExtendedSequenceNumber(rawValue: source.rawValue &+ sequenceOffset)
        }
        package func source(_ sequence: ExtendedSequenceNumber) -> ExtendedSequenceNumber {
            ExtendedSequenceNumber(rawValue: sequence.rawValue &- sequenceOffset)
        }
        package func timestamp(_ source: RTPTimestamp) -> RTPTimestamp {
            RTPTimestamp(rawValue: source.rawValue &+ timestampOffset)
        }
        package func pictureID(_ source: UInt16, bits: UInt8) -> UInt16 {
            (source &+ pictureIDOffset) & (bits == 7 ? 0x7F : 0x7FFF)
        }
        package func tl0(_ source: UInt8) -> UInt8 { source &+ tl0Offset }
        package func frameNumber(_ source: UInt16) -> UInt16 { source &+ frameNumberOffset }
        /// Puts the slot's own picture and layer numbers into a copy of a packet's payload, where they differ from the
        /// source's.
        @inline(__always)
        func renumber(_ payload: UnsafeMutableRawPointer, _ packet: PacketDescription) {
            guard !keepsPayload else { return }
            if packet.pictureIDBits != 0 {
                let place = Int(packet.pictureIDOffset)
                let value = pictureID(packet.pictureID, bits: packet.pictureIDBits)
                if packet.pictureIDBits == 15 {
                    unsafe payload.storeBytes(of: (0x8000 | value).bigEndian, toByteOffset: place, as: UInt16.self)
                } else {
                    unsafe payload.storeBytes(of: UInt8(truncatingIfNeeded: value), toByteOffset: place, as: UInt8.self)
                }
            }
            if packet.tl0Offset != 0 {
                let place = Int(packet.tl0Offset)
                unsafe payload.storeBytes(of: tl0(packet.tl0), toByteOffset: place, as: UInt8.self)
            }
        }
        /// The SRTP packet index of a source packet under its outgoing number.
        @inline(__always)
        func packetIndex(_ source: ExtendedSequenceNumber) -> UInt64 {
            UInt64(bitPattern: source.rawValue &+ sequenceOffset &- RTPRewriter.firstCycle)
        }
        var outputStart: ExtendedSequenceNumber { sequence(sourceStart) }
    }

    /// The last numbers that went out, from which a next source continues.
    private struct Output: Sendable {
        var sequence: ExtendedSequenceNumber
        var timestamp: RTPTimestamp
        var sentAt: Instant
        var pictureID: UInt16 = 0
        var tl0: UInt8 = 0
        var frameNumber: UInt16 = 0
    }

    /// Enough for the left-out packets of the longest time that a retransmission may reach back.
    static let segmentsMax = 32
    /// Outgoing numbers that may stay unused at once: as many packets as loss recovery asks a publisher for. A wider gap
    /// is closed.
    static let skippedMax = LossDetector.missingMax

    private let clockRate: Int
    /// The sequence number's roll-overs as SRTP counts them are 0 at the first packet (RFC 3711 §3.3.1).
    static let firstCycle: Int64 = 0x1_0000

    private let initialSequence: ExtendedSequenceNumber
    private let initialTimestamp: RTPTimestamp
    /// The newest segment, apart from the others because nearly every packet belongs to it.
    package private(set) var currentSegment: Segment?
    /// The ones before it, oldest first.
    private var earlier: ContiguousArray<Segment> = []
    private var output: Output?
    /// Outgoing numbers that may stay unused now. Each packet sent allows for one more, up to `skippedMax`.
    private var skippable = RTPRewriter.skippedMax
    /// The packets sent when `skippable` was brought up to date.
    private var packetsCounted: UInt32 = 0

    /// - Parameters:
    ///   - clockRate: of the slot's codecs, in Hz.
    ///   - seed: random; decides the first sequence number and timestamp (RFC 3550 §5.1).
    package init(clockRate: Int, seed: UInt64) {
        self.clockRate = clockRate
        // The lower half leaves every receiver time to lock on before the first wrap.
        initialSequence = ExtendedSequenceNumber(rawValue: Self.firstCycle + Int64(seed & 0x7FFF))
        initialTimestamp = RTPTimestamp(rawValue: UInt32(truncatingIfNeeded: seed >> 32))
    }

    /// The stream that plays now.
    package var currentStream: StreamID? { currentSegment?.stream }
    /// The newest sequence number sent; `nil` before the first packet.
    package var newestSequence: ExtendedSequenceNumber? { output?.sequence }
    /// The timestamp of that packet, and when it was sent.
    package var newestTimestamp: (timestamp: RTPTimestamp, sentAt: Instant)? {
        output.map { ($0.timestamp, $0.sentAt) }
    }

    /// Lets `stream` play from this packet on, as the continuation of what was sent before.
    /// - Parameter alignedTimestamp: the outgoing timestamp that keeps the media's own timing, where it is known;
    ///   used if it lies between the last one sent and a second after now.
    package mutating func begin(
        _ stream: StreamID,
        at packet: PacketDescription,
        alignedTimestamp: RTPTimestamp?,
        now: Instant
    ) {
        let nextSequence = output?.sequence.advanced(by: 1) ?? initialSequence
        var nextTimestamp = initialTimestamp
        if let output {
            let elapsed = max((now - output.sentAt).nanoseconds / 1_000, 0)
            let ticks = max(Int(elapsed) * clockRate / 1_000_000, clockRate / 100)
            nextTimestamp = output.timestamp.advanced(by: ticks)
            if let alignedTimestamp {
                let step = output.timestamp.distance(to: alignedTimestamp)
                if step > 0, step < ticks + clockRate { nextTimestamp = alignedTimestamp }
            }
        }
        append(
            Segment(
                stream: stream,
                sourceStart: packet.sequence,
                sequenceOffset: nextSequence.rawValue &- packet.sequence.rawValue,
                timestampOffset: nextTimestamp.rawValue &- packet.timestamp.rawValue,
                pictureIDOffset: output.map { ($0.pictureID &+ 1) &- packet.pictureID } ?? 0,
                tl0Offset: output.map { ($0.tl0 &+ 1) &- packet.tl0 } ?? 0,
                frameNumberOffset: output.map { ($0.frameNumber &+ 1) &- packet.frameNumber } ?? 0
            )
        )
    }

    /// The segment that a packet of `stream` belongs to; `nil` when it is from before the stream began to play or
    /// from longer ago than is remembered.
    @inline(__always)
    package func segment(of source: ExtendedSequenceNumber, in stream: StreamID) -> Segment? {
        guard let current = currentSegment, current.stream == stream else { return nil }
        return source >= current.sourceStart ? current : earlierSegment(of: source, in: stream, before: current)
    }

    private func earlierSegment(
        of source: ExtendedSequenceNumber,
        in stream: StreamID,
        before current: Segment
    ) -> Segment? {
        var end = current.outputStart
        var index = earlier.count - 1
        while index >= 0, earlier[index].stream == stream {
            let segment = earlier[index]
            if source >= segment.sourceStart {
                // What lies beyond the segment's end was left out, or came while the stream did not play: its number
                // went to another packet.
                return segment.sequence(source) < end ? segment : nil
            }
            end = segment.outputStart
            index -= 1
        }
        return nil
    }

    /// Whether a packet leaves no outgoing number unused: it follows the newest one sent, or comes before it.
    @inline(__always)
    func follows(_ source: ExtendedSequenceNumber, in segment: Segment) -> Bool {
        guard let output else { return false }
        return segment.sequence(source).rawValue <= output.sequence.rawValue &+ 1
    }

    /// Outgoing numbers that stay unused when a packet goes out in a segment as the next one.
    private func gap(before source: ExtendedSequenceNumber, in segment: Segment) -> Int64 {
        guard let output else { return 0 }
        return segment.sequence(source).rawValue &- output.sequence.rawValue &- 1
    }

    /// Outgoing numbers that may stay unused after `packetsSent` packets.
    private func skippable(after packetsSent: UInt32) -> Int {
        min(skippable &+ Int(packetsSent &- packetsCounted), Self.skippedMax)
    }

    /// Begins a new segment at a packet of the current stream where too many are missing before it.
    ///
    /// A receiver finds a packet's SRTP index by those that it received. It takes a number 2^15 ahead of them for one of
    /// another cycle, and can decrypt nothing from there on (RFC 3711 §3.3.1). So numbers stay unused only for packets that
    /// may still come. Where the source jumps further, or leaves gaps all the time, the packet goes out one number after
    /// the next: that number stays unused, by which the receiver sees that something is missing.
    /// - Parameter packetsSent: all so far, whatever their source.
    package mutating func closeGap(before source: ExtendedSequenceNumber, packetsSent: UInt32) {
        guard let segment = currentSegment, let output, source >= segment.sourceStart,
            gap(before: source, in: segment) > Int64(skippable(after: packetsSent))
        else { return }
        append(
            Segment(
                stream: segment.stream,
                sourceStart: source,
                sequenceOffset: output.sequence.rawValue &+ 2 &- source.rawValue,
                timestampOffset: segment.timestampOffset,
                pictureIDOffset: segment.pictureIDOffset,
                tl0Offset: segment.tl0Offset,
                frameNumberOffset: segment.frameNumberOffset
            )
        )
    }

    /// Notes that a packet is about to be noted as `sent` which perhaps does not follow the newest one.
    package mutating func noteGap(before source: ExtendedSequenceNumber, in segment: Segment, packetsSent: UInt32) {
        let gap = gap(before: source, in: segment)
        guard gap > 0 else { return }
        skippable = max(skippable(after: packetsSent) - Int(clamping: gap), 0)
        packetsCounted = packetsSent
    }

    /// Leaves a packet of the current stream out, closing the gap for those after it.
    /// - Returns: `false` when later packets are sent already: then the number stays unused.
    package mutating func leaveOut(_ source: ExtendedSequenceNumber) -> Bool {
        guard let segment = currentSegment, let newest = output?.sequence,
            source >= segment.sourceStart, segment.sequence(source) == newest.advanced(by: 1)
        else { return false }
        append(
            Segment(
                stream: segment.stream,
                sourceStart: source.advanced(by: 1),
                sequenceOffset: segment.sequenceOffset - 1,
                timestampOffset: segment.timestampOffset,
                pictureIDOffset: segment.pictureIDOffset,
                tl0Offset: segment.tl0Offset,
                frameNumberOffset: segment.frameNumberOffset
            )
        )
        return true
    }

    /// Notes what was sent.
    @inline(__always)
    package mutating func sent(
        _ packet: PacketDescription,
        in segment: Segment,
        at now: Instant
    ) {
        let sequence = segment.sequence(packet.sequence)
        guard output.map({ sequence > $0.sequence }) ?? true else { return }
        var next = output ?? Output(sequence: sequence, timestamp: .init(rawValue: 0), sentAt: now)
        next.sequence = sequence
        next.timestamp = segment.timestamp(packet.timestamp)
        next.sentAt = now
        if packet.pictureIDBits != 0 {
            next.pictureID = segment.pictureID(packet.pictureID, bits: packet.pictureIDBits)
        }
        if packet.tl0Offset != 0 { next.tl0 = segment.tl0(packet.tl0) }
        if packet.hasFrameNumber { next.frameNumber = segment.frameNumber(packet.frameNumber) }
        output = next
    }

    /// Which source packet went out under a sequence number; `nil` when that was never sent or is forgotten.
    package func origin(of wire: SequenceNumber) -> (segment: Segment, source: ExtendedSequenceNumber)? {
        guard let newest = output?.sequence else { return nil }
        let sequence = newest.advanced(by: newest.wire.distance(to: wire))
        guard sequence <= newest else { return nil }
        guard let current = currentSegment else { return nil }
        if sequence >= current.outputStart { return (current, current.source(sequence)) }
        var index = earlier.count - 1
        while index >= 0 {
            if sequence >= earlier[index].outputStart { return (earlier[index], earlier[index].source(sequence)) }
            index -= 1
        }
        return nil
    }

    private mutating func append(_ segment: Segment) {
        // A segment that starts where the last one did never mapped a packet.
        if let current = currentSegment, current.outputStart != segment.outputStart {
            if earlier.count == Self.segmentsMax - 1 { earlier.removeFirst() }
            earlier.append(current)
        }
        currentSegment = segment
    }
}
