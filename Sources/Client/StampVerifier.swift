package import Wire

/// Judges what a receiver got of one synthetic source: each packet once, each frame whole and decodable, how late.
package struct StampVerifier: Sendable {
    private struct Assembly: Sendable {
        var isKeyFrame: Bool
        var missing: Int
    }
    /// Frames under assembly; a receiver's jitter buffer holds no more.
    private static let assembliesMax = 256

    private var first: UInt32?
    private var newest: UInt32?
    private var seen: Set<UInt32> = []
    private var assemblies: [UInt32: Assembly] = [:]
    private var complete: [UInt32: Bool] = [:]
    private var lastDecoded: UInt32?
    private var source: UInt32?

    package private(set) var packets = 0
    package private(set) var bytes = 0
    package private(set) var duplicates = 0
    /// Packets that came behind a newer one: reordered, or restored by retransmission.
    package private(set) var late = 0
    package private(set) var framesDecoded = 0
    package private(set) var keyFramesDecoded = 0
    /// Packets with no stamp, or with another source's after the switch count.
    package private(set) var unreadable = 0
    /// Changes of source, after which counting begins anew.
    package private(set) var switches = 0
    package private(set) var firstDecodedAt: Instant?
    package private(set) var lastDecodedAt: Instant?
    /// The longest time between two decoded frames.
    package private(set) var longestGap = Interval.zero
    /// One-way delays in nanoseconds, a uniform sample of bounded size.
    package private(set) var delays: [Int64] = []
    private var delaysSeen = 0
    private static let delaysMax = 10_000

    package init() {}

    /// Packets between the first and the newest that never came; of the present source.
    package var lost: Int {
        guard let first, let newest else { return 0 }
        return Int(newest - first) + 1 - seen.count
    }
    package var newestPacket: UInt32? { newest }
    package var newestFrameDecoded: UInt32? { lastDecoded }

    /// Takes the part of a payload that begins with the stamp.
    package mutating func received(_ stamped: RawSpan, at now: Instant) {
        guard let stamp = MediaStamp(stamped) else {
            unreadable += 1
            return
        }
        if source != stamp.source { begin(stamp.source) }
        guard seen.insert(stamp.packet).inserted else {
            duplicates += 1
            return
        }
        packets += 1
        bytes += stamped.byteCount
        if first == nil { first = stamp.packet }
        if let newest, stamp.packet < newest {
            late += 1
            first = min(first ?? stamp.packet, stamp.packet)
        } else {
            newest = stamp.packet
        }
        note(delay: (now - stamp.sentAt).nanoseconds)
        assemble(stamp, at: now)
    }

    private mutating func begin(_ source: UInt32) {
        if self.source != nil { switches += 1 }
        self.source = source
        first = nil
        newest = nil
        seen.removeAll()
        assemblies.removeAll()
        complete.removeAll()
        lastDecoded = nil
    }

    private mutating func note(delay: Int64) {
        delaysSeen += 1
        if delays.count < Self.delaysMax {
            delays.append(delay)
        } else {
            // Every n-th from here on keeps the sample even without a generator.
            delays[delaysSeen % Self.delaysMax] = delay
        }
    }

    private mutating func assemble(_ stamp: MediaStamp, at now: Instant) {
        var assembly = assemblies[stamp.frame] ?? Assembly(isKeyFrame: stamp.isKeyFrame, missing: Int(stamp.packetsInFrame))
        assembly.missing -= 1
        if assembly.missing == 0 {
            assemblies[stamp.frame] = nil
            complete[stamp.frame] = assembly.isKeyFrame
            decode(at: now)
        } else {
            assemblies[stamp.frame] = assembly
        }
        if assemblies.count > Self.assembliesMax, let oldest = assemblies.keys.min() { assemblies[oldest] = nil }
    }

    /// Decodes in order: the next frame, or a key frame further on when the next is missing.
    private mutating func decode(at now: Instant) {
        while true {
            if let lastDecoded, let isKeyFrame = complete.removeValue(forKey: lastDecoded &+ 1) {
                decoded(lastDecoded &+ 1, isKeyFrame: isKeyFrame, at: now)
                continue
            }
            let candidates = complete.filter { frame, isKeyFrame in
                isKeyFrame && (lastDecoded.map { frame > $0 } ?? true)
            }
            guard let frame = candidates.keys.min() else { break }
            complete = complete.filter { $0.key > frame }
            decoded(frame, isKeyFrame: true, at: now)
        }
        if complete.count > Self.assembliesMax, let oldest = complete.keys.min() { complete[oldest] = nil }
    }

    private mutating func decoded(_ frame: UInt32, isKeyFrame: Bool, at now: Instant) {
        lastDecoded = frame
        framesDecoded += 1
        if isKeyFrame { keyFramesDecoded += 1 }
        if firstDecodedAt == nil { firstDecodedAt = now }
        if let lastDecodedAt { longestGap = max(longestGap, now - lastDecodedAt) }
        lastDecodedAt = now
    }
}
