package import Base
package import Wire

/// Verifies the packets received from one synthetic source: losses, duplicates, order, complete and decodable frames.
///
/// It remembers the last ``packetsRemembered`` packets and ``framesRemembered`` frames in 3 KiB.
package struct StampVerifier: Sendable {
    /// A power of two: 20 s of a 1.5 Mbit/s stream, longer than any retransmission takes.
    package static let packetsRemembered = 4_096
    /// A power of two: frames that are incomplete or wait for an earlier one, as many as a jitter buffer holds.
    package static let framesRemembered = 256

    private struct Assembly: Sendable {
        var frame: UInt32
        /// 0: complete, waiting to be decoded.
        var missing: UInt16
        var isKeyFrame: Bool
    }

    private var source: UInt32?
    private var first: UInt32?
    private var newest: UInt32?
    private var newestSequence: ExtendedSequenceNumber?
    /// Packets before it are not counted.
    private var floor: UInt32 = 0
    /// Different packets from `floor` on.
    private var unique = 0
    /// One bit for each packet behind `newest`, at its number modulo the size.
    private var seen: ContiguousArray<UInt64> = []
    private var assemblies: ContiguousArray<Assembly?> = []
    package private(set) var newestFrameDecoded: UInt32?
    /// Whether a complete later key frame may be waiting.
    private var mayJump = false

    package private(set) var packets = 0
    package private(set) var bytes = 0
    package private(set) var duplicates = 0
    /// Packets that arrived after a newer one without retransmission.
    package private(set) var reordered = 0
    /// Packets that arrived after a newer one as retransmissions.
    package private(set) var restored = 0
    /// Packets of the present source that the server left out: the RTP sequence numbers have no gap there.
    package private(set) var withheld = 0
    package private(set) var framesDecoded = 0
    package private(set) var keyFramesDecoded = 0
    /// Packets without a stamp.
    package private(set) var unreadable = 0
    /// Whether no packet has come, with a stamp or without.
    package var isSilent: Bool { packets == 0 && unreadable == 0 }
    /// Changes of source, each of which restarts the counts of losses.
    package private(set) var switches = 0
    package private(set) var lastDecodedAt: Instant?
    /// The longest time between two decoded frames.
    package private(set) var longestGap = Interval.zero
    /// Frames that came 150 ms later than usual and after three times the usual time (W3C webrtc-stats, `freezeCount`).
    package private(set) var freezes = 0
    /// The time between these frames and the ones before them.
    package private(set) var freezeTime = Interval.zero
    /// The usual time between two frames, of the last 30 or so; `nil` before the second frame.
    private var usualGap: Interval?

    package init() {}

    /// Packets that arrived after a newer one.
    package var late: Int { reordered + restored }

    /// The source that plays, by the number in its stamps.
    package var sourceNumber: UInt32? { source }

    /// Packets of the present source between the first and the newest that have not arrived, ``withheld`` ones included.
    package var lost: Int {
        guard let first, let newest, newest >= first else { return 0 }
        return Int(newest) - Int(first) + 1 - unique
    }

    /// ``lost`` plus the packets after the newest of the `made` packets that the source sent in all.
    package func lost(ofMade made: Int) -> Int {
        guard let newest else { return 0 }
        return lost + max(made - Int(newest) - 1, 0)
    }

    /// The numbers of the remembered packets of the present source that have not arrived.
    package var missing: [UInt32] {
        guard let first, let newest, newest >= first else { return [] }
        let oldest = UInt32(max(Int(newest) - Self.packetsRemembered + 1, Int(first)))
        return (oldest...newest).filter { !hasSeen($0) }
    }

    /// Restarts the counts of losses and gaps after the newest packet. The other counts continue.
    package mutating func beginWindow() {
        longestGap = .zero
        guard let newest, newest < .max else { return }
        floor = newest + 1
        first = floor
        unique = 0
        withheld = 0
    }

    /// Counts a packet.
    /// - Parameters:
    ///   - stamped: the payload from the stamp on.
    ///   - sequence: the packet's own sequence number; `nil` where it is not known.
    ///   - isRestored: whether the packet is a retransmission.
    /// - Returns: the stamp of a packet that is not a duplicate.
    @discardableResult
    package mutating func received(
        _ stamped: RawSpan,
        sequence: ExtendedSequenceNumber? = nil,
        isRestored: Bool = false,
        at now: Instant
    ) -> MediaStamp? {
        guard let stamp = MediaStamp(stamped) else {
            unreadable += 1
            return nil
        }
        if source != stamp.source { begin(stamp.source) }
        guard place(stamp.packet, sequence, isRestored: isRestored) else {
            duplicates += 1
            return nil
        }
        packets += 1
        bytes += stamped.byteCount
        assemble(stamp, at: now)
        return stamp
    }

    private mutating func begin(_ source: UInt32) {
        if self.source != nil { switches += 1 }
        self.source = source
        first = nil
        newest = nil
        newestSequence = nil
        floor = 0
        unique = 0
        withheld = 0
        seen = ContiguousArray(repeating: 0, count: Self.packetsRemembered / 64)
        assemblies = ContiguousArray(repeating: nil, count: Self.framesRemembered)
        newestFrameDecoded = nil
        mayJump = false
    }

    // MARK: Packets

    /// Records a packet's number.
    /// - Returns: `false` for a duplicate, and for a packet that is too old to tell.
    private mutating func place(_ packet: UInt32, _ sequence: ExtendedSequenceNumber?, isRestored: Bool) -> Bool {
        if let newest, packet <= newest {
            guard newest - packet < Self.packetsRemembered, !hasSeen(packet) else { return false }
            if isRestored { restored += 1 } else { reordered += 1 }
        } else {
            forgetBits(upTo: packet)
            noteWithheld(before: packet, sequence)
            newest = packet
            newestSequence = sequence
        }
        seen[Self.word(packet)] |= Self.bit(packet)
        if packet >= floor {
            unique += 1
            first = min(first ?? packet, packet)
        }
        return true
    }

    /// Counts what is missing between the newest packet and `packet` without a gap of the sequence numbers.
    private mutating func noteWithheld(before packet: UInt32, _ sequence: ExtendedSequenceNumber?) {
        guard let newest, let newestSequence, let sequence else { return }
        let missing = Int(packet) - Int(newest) - 1
        withheld += max(missing - max(newestSequence.distance(to: sequence) - 1, 0), 0)
    }

    /// Clears the bits of the packets from the newest to `packet`, which have not arrived.
    private mutating func forgetBits(upTo packet: UInt32) {
        guard let newest else { return }
        guard packet - newest < Self.packetsRemembered else {
            for index in seen.indices { seen[index] = 0 }
            return
        }
        var number = newest
        while number < packet {
            number += 1
            seen[Self.word(number)] &= ~Self.bit(number)
        }
    }

    private func hasSeen(_ packet: UInt32) -> Bool { seen[Self.word(packet)] & Self.bit(packet) != 0 }

    private static func word(_ packet: UInt32) -> Int { Int(packet) % packetsRemembered / 64 }
    private static func bit(_ packet: UInt32) -> UInt64 { 1 << UInt64(packet % 64) }

    // MARK: Frames

    private mutating func assemble(_ stamp: MediaStamp, at now: Instant) {
        if let newestFrameDecoded, stamp.frame <= newestFrameDecoded { return }
        let index = Int(stamp.frame) % Self.framesRemembered
        var assembly = Assembly(frame: stamp.frame, missing: max(stamp.packetsInFrame, 1), isKeyFrame: stamp.isKeyFrame)
        if let present = assemblies[index] {
            // A newer frame has taken the place of this one.
            guard present.frame <= stamp.frame else { return }
            if present.frame == stamp.frame { assembly = present }
        }
        guard assembly.missing > 0 else { return }
        assembly.missing -= 1
        assemblies[index] = assembly
        guard assembly.missing == 0 else { return }
        if assembly.isKeyFrame { mayJump = true }
        decode(at: now)
    }

    /// Decodes in order: the next frame, or a key frame further on when the next is missing.
    private mutating func decode(at now: Instant) {
        while true {
            if let newestFrameDecoded, newestFrameDecoded < .max,
                let next = assemblies[Int(newestFrameDecoded + 1) % Self.framesRemembered],
                next.frame == newestFrameDecoded + 1, next.missing == 0
            {
                decoded(next, at: now)
                continue
            }
            guard mayJump else { return }
            mayJump = false
            guard let target = nextKeyFrame else { return }
            mayJump = true
            decoded(target, at: now)
        }
    }

    /// The earliest complete key frame that was not decoded.
    private var nextKeyFrame: Assembly? {
        var found: Assembly?
        for case let assembly? in assemblies
        where assembly.isKeyFrame && assembly.missing == 0 && newestFrameDecoded.map({ assembly.frame > $0 }) ?? true {
            if found.map({ assembly.frame < $0.frame }) ?? true { found = assembly }
        }
        return found
    }

    private mutating func decoded(_ assembly: Assembly, at now: Instant) {
        assemblies[Int(assembly.frame) % Self.framesRemembered] = nil
        newestFrameDecoded = assembly.frame
        framesDecoded += 1
        if assembly.isKeyFrame { keyFramesDecoded += 1 }
        if let lastDecodedAt { noteGap(now - lastDecodedAt) }
        lastDecodedAt = now
    }

    private mutating func noteGap(_ gap: Interval) {
        longestGap = max(longestGap, gap)
        let usual = usualGap ?? gap
        if gap > max(usual * 3, usual + .milliseconds(150)) {
            freezes += 1
            freezeTime = freezeTime + gap
        }
        usualGap = Interval(nanoseconds: usual.nanoseconds &+ (gap.nanoseconds &- usual.nanoseconds) / 30)
    }
}
