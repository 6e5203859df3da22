package import Base
package import Wire

/// Identifies one received stream (one SSRC of one peer) within a forwarding core; never used again.
package struct StreamID: Hashable, Sendable {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// Makes the packets of changing sources look to one subscriber like a single unbroken stream: sequence numbers and
/// timestamps, and the picture and frame numbers inside the payload.
///
/// The mapping is a list of segments, each with constant offsets. A segment begins where a source begins to play, where a
/// packet was left out and where the source jumps. Old segments stay for a while, so that late packets and retransmissions
/// map as they did first.
///
/// What becomes of the numbers when packets are left out:
/// - Sequence numbers close up. A number that was reserved for a packet that is still missing stays reserved.
/// - VP8 picture ids and TL0PICIDX close up, by one for each picture. Receivers hold upper temporal layers back while an id
///   is missing.
/// - VP9 picture ids and frame numbers of the dependency descriptor keep their distances, by which references are counted.
///
/// Template identifiers of a next source's dependency structure follow those of the structure before (AV1 RTP specification,
/// A.8.4).
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
        /// Modulo 64.
        let templateIDOffset: UInt8
        /// The numbers of the segment carry no packet of the source.
        let isUnused: Bool

        init(
            stream: StreamID,
            sourceStart: ExtendedSequenceNumber,
            sequenceOffset: Int64,
            timestampOffset: UInt32,
            pictureIDOffset: UInt16,
            tl0Offset: UInt8,
            frameNumberOffset: UInt16,
            templateIDOffset: UInt8,
            isUnused: Bool = false
        ) {
            self.stream = stream
            self.sourceStart = sourceStart
            self.sequenceOffset = sequenceOffset
            self.timestampOffset = timestampOffset
            self.pictureIDOffset = pictureIDOffset
            self.tl0Offset = tl0Offset
            self.frameNumberOffset = frameNumberOffset
            self.templateIDOffset = templateIDOffset
            self.isUnused = isUnused
        }

        /// The same mapping from another packet on.
        /// - Parameter otherTimestamps: the offset of timestamps, if it changes.
        func starting(
            at source: ExtendedSequenceNumber,
            timestampOffset otherTimestamps: UInt32? = nil,
            isUnused: Bool = false
        ) -> Segment {
            Segment(
                stream: stream,
                sourceStart: source,
                sequenceOffset: sequenceOffset,
                timestampOffset: otherTimestamps ?? timestampOffset,
                pictureIDOffset: pictureIDOffset,
                tl0Offset: tl0Offset,
                frameNumberOffset: frameNumberOffset,
                templateIDOffset: templateIDOffset,
                isUnused: isUnused
            )
        }

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

    /// Enough for two seconds, the age of the oldest retransmission, with 100 left-out runs of packets a second: every
    /// other picture at 60 frames a second in two spatial layers leaves 90.
    static let segmentsMax = 256
    /// Segments that are forgotten together, so that one left-out picture does not move all others.
    private static let segmentsForgotten = 32
    /// Outgoing numbers that may stay unused at once: as many packets as loss recovery asks a publisher for. A wider gap
    /// is closed.
    static let skippedMax = NACKTracker.missingMax

    private let clockRate: Int
    /// The sequence number's roll-overs as SRTP counts them are 0 at the first packet (RFC 3711 §3.3.1).
    static let firstCycle: Int64 = 0x1_0000

    private let initialSequence: ExtendedSequenceNumber
    private let initialTimestamp: RTPTimestamp
    /// The newest segment, apart from the others because nearly every packet belongs to it.
    package private(set) var currentSegment: Segment?
    /// The ones before it, oldest first. It grows as packets are left out, up to `segmentsMax`.
    private(set) var earlier: ContiguousArray<Segment> = []
    private var output: Output?
    /// The outgoing template identifier behind those of the newest dependency structure, modulo 64; `nil` before the first one.
    private var nextTemplateID: UInt8?
    /// The frame of the newest packet that was left out, by its timestamp and spatial layer; `nil` before the first since the
    /// source began or jumped.
    private var droppedFrame: UInt32?
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

    /// The newest packet that was sent, as its source numbers it; `nil` before the first one.
    var newestSource: (sequence: ExtendedSequenceNumber, timestamp: RTPTimestamp)? {
        guard let output, let segment = currentSegment else { return nil }
        return (
            segment.source(output.sequence),
            RTPTimestamp(rawValue: output.timestamp.rawValue &- segment.timestampOffset)
        )
    }

    /// The newest packet of a stream that a number was for, as far as is remembered.
    func newestSource(of stream: StreamID) -> ExtendedSequenceNumber? {
        guard let current = currentSegment, let output else { return nil }
        if current.stream == stream { return current.source(output.sequence) }
        var end = current.outputStart
        for segment in earlier.reversed() {
            if segment.stream == stream { return segment.source(end.advanced(by: -1)) }
            end = segment.outputStart
        }
        return nil
    }

    /// Lets `stream` play from this packet on, as the continuation of what was sent before.
    /// - Parameters:
    ///   - alignedTimestamp: the outgoing timestamp that keeps the media's own timing, where it is known; used if it lies
    ///     between the last one sent and a second after now.
    ///   - templateIDs: the first template identifier of the stream's dependency structure, and how many follow; `nil`
    ///     without a structure.
    package mutating func begin(
        _ stream: StreamID,
        at packet: PacketDescription,
        alignedTimestamp: RTPTimestamp?,
        templateIDs: TemplateIDs? = nil,
        now: Instant
    ) {
        let nextSequence = output?.sequence.advanced(by: 1) ?? initialSequence
        let nextTimestamp = output.map { timestamp(after: $0, alignedTimestamp, now) } ?? initialTimestamp
        // A receiver that misses the new structure takes none of its templates for one of the structure before.
        let offset = templateIDs.map { ((nextTemplateID ?? $0.first) &- $0.first) & 0x3F } ?? 0
        append(restart(stream, at: packet, nextSequence, nextTimestamp, templateIDOffset: offset))
        if let templateIDs { noteTemplateIDs(templateIDs) }
    }

    /// Notes the newest dependency structure of the stream that plays.
    package mutating func noteTemplateIDs(_ ids: TemplateIDs) {
        guard let currentSegment else { return }
        nextTemplateID = ids.first &+ ids.count &+ currentSegment.templateIDOffset
    }

    /// The timestamp of a source that begins now.
    private func timestamp(after output: Output, _ aligned: RTPTimestamp?, _ now: Instant) -> RTPTimestamp {
        let ticks = max(elapsedTicks(since: output.sentAt, now), clockRate / 100)
        if let aligned {
            let step = output.timestamp.distance(to: aligned)
            if step > 0, step < ticks + clockRate { return aligned }
        }
        return output.timestamp.advanced(by: ticks)
    }

    private func elapsedTicks(since instant: Instant, _ now: Instant) -> Int {
        Int(max((now - instant).nanoseconds / 1_000, 0)) * clockRate / 1_000_000
    }

    /// A segment in which every number of a packet becomes the next one.
    private func restart(
        _ stream: StreamID,
        at packet: PacketDescription,
        _ sequence: ExtendedSequenceNumber,
        _ timestamp: RTPTimestamp,
        templateIDOffset: UInt8
    ) -> Segment {
        Segment(
            stream: stream,
            sourceStart: packet.sequence,
            sequenceOffset: sequence.rawValue &- packet.sequence.rawValue,
            timestampOffset: timestamp.rawValue &- packet.timestamp.rawValue,
            pictureIDOffset: output.map { ($0.pictureID &+ 1) &- packet.pictureID } ?? 0,
            tl0Offset: output.map { ($0.tl0 &+ 1) &- packet.tl0 } ?? 0,
            frameNumberOffset: output.map { ($0.frameNumber &+ 1) &- packet.frameNumber } ?? 0,
            templateIDOffset: templateIDOffset
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
                return !segment.isUnused && segment.sequence(source) < end ? segment : nil
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

    /// Begins a new segment at a packet of the current stream where its source jumps: too many packets are missing before
    /// it, or its timestamp is far from where the time that passed puts it.
    ///
    /// A receiver finds a packet's SRTP index by those that it received. It takes a number 2^15 ahead of them for one of
    /// another cycle, and can decrypt nothing from there on (RFC 3711 §3.3.1). So numbers stay unused only for packets that
    /// may still come. Where the source jumps further, or leaves gaps all the time, the packet goes out one number after
    /// the next: that number stays unused, by which the receiver sees that something is missing.
    ///
    /// A timestamp jumps when its sender has restarted. Timestamps and picture numbers then continue as at a switch of
    /// sources.
    /// - Parameter packetsSent: all so far, whatever their source.
    package mutating func followJump(to packet: PacketDescription, packetsSent: UInt32, at now: Instant) {
        let source = packet.sequence
        guard let segment = currentSegment, let output, source >= segment.sourceStart,
            segment.sequence(source) > output.sequence
        else { return }
        let isGapTooWide = gap(before: source, in: segment) > Int64(skippable(after: packetsSent))
        let sequence = isGapTooWide ? output.sequence.advanced(by: 2) : segment.sequence(source)
        if timestampJumps(segment.timestamp(packet.timestamp), from: output, now) {
            let timestamp = timestamp(after: output, nil, now)
            let offset = segment.templateIDOffset
            append(restart(segment.stream, at: packet, sequence, timestamp, templateIDOffset: offset))
        } else if isGapTooWide {
            append(closing(segment, at: source, sequence: sequence))
        }
    }

    /// Begins a new segment at the first packet of a frame of the current stream, which goes out with another timestamp.
    mutating func moveTimestamps(to timestamp: RTPTimestamp, at packet: PacketDescription) {
        guard let segment = currentSegment, packet.sequence >= segment.sourceStart else { return }
        let offset = timestamp.rawValue &- packet.timestamp.rawValue
        append(segment.starting(at: packet.sequence, timestampOffset: offset))
    }

    /// Between packets of one source a timestamp never goes back by more than this.
    private static let timestampStepBackSeconds = 1
    /// A timestamp may be ahead of the time that passed by so much: a sender that resumes may still send what it captured
    /// before.
    private static let timestampLeadSeconds = 10

    private func timestampJumps(_ timestamp: RTPTimestamp, from output: Output, _ now: Instant) -> Bool {
        let step = output.timestamp.distance(to: timestamp)
        if step >= -Self.timestampStepBackSeconds * clockRate, step <= Self.timestampLeadSeconds * clockRate {
            return false
        }
        return step < 0 || step > elapsedTicks(since: output.sentAt, now) + Self.timestampLeadSeconds * clockRate
    }

    /// The segment's mapping from a packet on, which goes out with another number.
    private func closing(
        _ segment: Segment,
        at source: ExtendedSequenceNumber,
        sequence: ExtendedSequenceNumber,
        pictures: UInt16 = 0,
        baseLayers: UInt8 = 0
    ) -> Segment {
        Segment(
            stream: segment.stream,
            sourceStart: source,
            sequenceOffset: sequence.rawValue &- source.rawValue,
            timestampOffset: segment.timestampOffset,
            pictureIDOffset: segment.pictureIDOffset &- pictures,
            tl0Offset: segment.tl0Offset &- baseLayers,
            frameNumberOffset: segment.frameNumberOffset,
            templateIDOffset: segment.templateIDOffset
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
    ///
    /// A frame, one spatial layer of a picture, is left out as a whole. Numbers of packets that are missing before it stay
    /// reserved, as nobody knows what it is that is missing.
    /// - Returns: `false`, changing nothing, when later packets were sent or left out already. The packet may then go out, or
    ///   `leaveUnused` gives up its number.
    package mutating func drop(_ packet: PacketDescription) -> Bool {
        guard let segment = currentSegment, let newest = output?.sequence, packet.sequence >= segment.sourceStart,
            segment.sequence(packet.sequence) > newest
        else { return false }
        let frame = packet.timestamp.rawValue &+ UInt32(packet.spatialID)
        let isSameFrame = droppedFrame == frame
        // What is missing between two packets of one frame is of the same frame.
        let closesMissing = isSameFrame && newest < segment.outputStart
        let sequence = closesMissing ? segment.outputStart : segment.sequence(packet.sequence)
        // A picture of which something went out keeps its number. With the same one, a decoder would take the next for the rest of it.
        let isBegun = output?.timestamp == segment.timestamp(packet.timestamp)
        let closesPicture =
            packet.frame.contains(.closesPictureIDs) && packet.pictureIDBits != 0 && !isSameFrame && !isBegun
        append(
            closing(
                segment,
                at: packet.sequence.advanced(by: 1),
                sequence: sequence,
                pictures: closesPicture ? 1 : 0,
                baseLayers: closesPicture && packet.tl0Offset != 0 && packet.temporalID == 0 ? 1 : 0
            )
        )
        droppedFrame = frame
        return true
    }

    /// Gives up the number of a packet that `drop` refused: a padding-only packet has to fill it, and the source packet is
    /// never sent under it.
    /// - Returns: the number to fill; `nil` when the packet has none.
    package mutating func leaveUnused(_ source: ExtendedSequenceNumber) -> ExtendedSequenceNumber? {
        guard let current = currentSegment else { return nil }
        let next = source.advanced(by: 1)
        if source >= current.sourceStart {
            if source > current.sourceStart { earlier.append(current) }
            earlier.append(current.starting(at: source, isUnused: true))
            currentSegment = current.starting(at: next)
            forgetOldest()
            return current.sequence(source)
        }
        guard let segment = earlierSegment(of: source, in: current.stream, before: current),
            let index = earlier.lastIndex(where: { $0.outputStart == segment.outputStart })
        else { return nil }
        let number = segment.sequence(source)
        let end = index + 1 < earlier.count ? earlier[index + 1].outputStart : current.outputStart
        if number.advanced(by: 1) < end { earlier.insert(segment.starting(at: next), at: index + 1) }
        let unused = segment.starting(at: source, isUnused: true)
        if source == segment.sourceStart { earlier[index] = unused } else { earlier.insert(unused, at: index + 1) }
        forgetOldest()
        return number
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

    /// Which source packet went out under a sequence number; `nil` when that was never sent, carries no packet of a source
    /// or is forgotten. For a number that stays reserved it is the packet that is missing.
    package func origin(of wire: SequenceNumber) -> (segment: Segment, source: ExtendedSequenceNumber)? {
        guard let newest = output?.sequence, let current = currentSegment else { return nil }
        let sequence = newest.advanced(by: newest.wire.distance(to: wire))
        guard sequence <= newest else { return nil }
        if sequence >= current.outputStart { return (current, current.source(sequence)) }
        // The newest segment that begins at the number or before it; the list is in that order.
        var (low, high) = (0, earlier.count)
        while low < high {
            let middle = (low + high) / 2
            if earlier[middle].outputStart <= sequence { low = middle + 1 } else { high = middle }
        }
        guard low > 0, !earlier[low - 1].isUnused else { return nil }
        return (earlier[low - 1], earlier[low - 1].source(sequence))
    }

    private mutating func append(_ segment: Segment) {
        // A segment that starts there or beyond never mapped a packet that was sent.
        while let last = earlier.last, last.outputStart >= segment.outputStart { earlier.removeLast() }
        if let current = currentSegment, current.outputStart < segment.outputStart {
            earlier.append(current)
            forgetOldest()
        }
        currentSegment = segment
        droppedFrame = nil
    }

    private mutating func forgetOldest() {
        if earlier.count >= Self.segmentsMax { earlier.removeFirst(Self.segmentsForgotten) }
    }
}
