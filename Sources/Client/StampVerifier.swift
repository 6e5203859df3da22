package import Wire

/// Judges what a receiver got of one synthetic source: each packet once, each frame whole and decodable, how late.
///
/// It looks back over the last `packetsRemembered` packets and `framesRemembered` frames, and costs 3 KiB.
package struct StampVerifier: Sendable {
    /// A power of two: 20 s of a 1.5 Mbit/s stream, longer than anything is retransmitted.
    package static let packetsRemembered = 4_096
    /// A power of two: frames under assembly or waiting for one before them; a jitter buffer holds no more.
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
    /// Packets before it are not counted.
    private var floor: UInt32 = 0
    /// Different packets from `floor` on.
    private var unique = 0
    /// One bit for each packet behind `newest`, at its number modulo the size.
    private var seen: ContiguousArray<UInt64> = []
    private var assemblies: ContiguousArray<Assembly?> = []
    private var lastDecoded: UInt32?
    /// Whether a complete key frame may be waiting further on.
    private var mayJump = false

    package private(set) var packets = 0
    package private(set) var bytes = 0
    package private(set) var duplicates = 0
    /// Packets that came behind a newer one by themselves.
    package private(set) var reordered = 0
    /// Packets that came behind a newer one because they were lost and sent again.
    package private(set) var restored = 0
    package private(set) var framesDecoded = 0
    package private(set) var keyFramesDecoded = 0
    /// Packets without a stamp.
    package private(set) var unreadable = 0
    /// Changes of source, after which counting begins anew.
    package private(set) var switches = 0
    package private(set) var firstDecodedAt: Instant?
    package private(set) var lastDecodedAt: Instant?
    /// The longest time between two decoded frames.
    package private(set) var longestGap = Interval.zero

    package init() {}

    /// Packets that came behind a newer one, for whichever reason.
    package var late: Int { reordered + restored }

    /// The source that plays, by the number in its stamps.
    package var sourceNumber: UInt32? { source }
    package var newestPacket: UInt32? { newest }
    package var newestFrameDecoded: UInt32? { lastDecoded }

    /// Packets between the first and the newest that never came; of the present source.
    package var lost: Int {
        guard let first, let newest, newest >= first else { return 0 }
        return Int(newest) - Int(first) + 1 - unique
    }

    /// The same, with those after the newest when the source has made `made` packets in all.
    package func lost(ofMade made: Int) -> Int {
        guard let newest else { return 0 }
        return lost + max(made - Int(newest) - 1, 0)
    }

    /// The numbers of the packets that never came, of the present source, as far as it is remembered.
    package var missing: [UInt32] {
        guard let first, let newest, newest >= first else { return [] }
        let oldest = UInt32(max(Int(newest) - Self.packetsRemembered + 1, Int(first)))
        return (oldest...newest).filter { !hasSeen($0) }
    }

    /// Counts losses and gaps from here on: packets up to the newest count no more. The other counts go on.
    package mutating func beginWindow() {
        longestGap = .zero
        guard let newest, newest < .max else { return }
        floor = newest + 1
        first = floor
        unique = 0
    }

    /// Takes the part of a payload that begins with the stamp.
    /// - Parameter isRestored: whether the packet came as a retransmission.
    /// - Returns: the stamp when the packet is a new one.
    @discardableResult
    package mutating func received(_ stamped: RawSpan, isRestored: Bool = false, at now: Instant) -> MediaStamp? {
        guard let stamp = MediaStamp(stamped) else {
            unreadable += 1
            return nil
        }
        if source != stamp.source { begin(stamp.source) }
        guard place(stamp.packet, isRestored: isRestored) else {
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
        floor = 0
        unique = 0
        seen = ContiguousArray(repeating: 0, count: Self.packetsRemembered / 64)
        assemblies = ContiguousArray(repeating: nil, count: Self.framesRemembered)
        lastDecoded = nil
        mayJump = false
    }

    // MARK: Packets

    /// Notes a packet's number; `false` when it was here before, or so long ago that this cannot be told.
    private mutating func place(_ packet: UInt32, isRestored: Bool) -> Bool {
        if let newest, packet <= newest {
            guard newest - packet < Self.packetsRemembered, !hasSeen(packet) else { return false }
            if isRestored { restored += 1 } else { reordered += 1 }
        } else {
            forgetBits(upTo: packet)
            newest = packet
        }
        seen[Self.word(packet)] |= Self.bit(packet)
        if packet >= floor {
            unique += 1
            first = min(first ?? packet, packet)
        }
        return true
    }

    /// Clears the bits of the packets that become the remembered ones, of which none has come.
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
        if let lastDecoded, stamp.frame <= lastDecoded { return }
        let index = Int(stamp.frame) % Self.framesRemembered
        var assembly = Assembly(frame: stamp.frame, missing: max(stamp.packetsInFrame, 1), isKeyFrame: stamp.isKeyFrame)
        if let present = assemblies[index] {
            // The one that is so far behind is not waited for any more.
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
            if let lastDecoded, lastDecoded < .max,
                let next = assemblies[Int(lastDecoded + 1) % Self.framesRemembered],
                next.frame == lastDecoded + 1, next.missing == 0
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
        where assembly.isKeyFrame && assembly.missing == 0 && lastDecoded.map({ assembly.frame > $0 }) ?? true {
            if found.map({ assembly.frame < $0.frame }) ?? true { found = assembly }
        }
        return found
    }

    private mutating func decoded(_ assembly: Assembly, at now: Instant) {
        assemblies[Int(assembly.frame) % Self.framesRemembered] = nil
        lastDecoded = assembly.frame
        framesDecoded += 1
        if assembly.isKeyFrame { keyFramesDecoded += 1 }
        if firstDecodedAt == nil { firstDecodedAt = now }
        if let lastDecodedAt { longestGap = max(longestGap, now - lastDecodedAt) }
        lastDecodedAt = now
    }
}
