import Base
import Client
import EventLoop
import Impairment

/// What the clients of one loop, or of all loops, have sent and received of one kind of media.
struct MediaTally: Sendable {
    /// Sent by the publishers.
    var packetsMade = 0
    var framesMade = 0
    /// Received by the subscribers, each packet once.
    var packets = 0
    var bytes = 0
    var duplicates = 0
    var reordered = 0
    var restored = 0
    var unreadable = 0
    var framesDecoded = 0
    /// Since the window began.
    var lost = 0
    /// Since the window began.
    var withheld = 0
    var longestGap = Interval.zero
    /// Tracks without a packet so far.
    var silentTracks = 0
    var delays = DelayHistogram()

    mutating func add(_ verifier: StampVerifier, madeBySource made: Int?) {
        packets += verifier.packets
        bytes += verifier.bytes
        duplicates += verifier.duplicates
        reordered += verifier.reordered
        restored += verifier.restored
        unreadable += verifier.unreadable
        framesDecoded += verifier.framesDecoded
        let missing = made.map { verifier.lost(ofMade: $0) } ?? verifier.lost
        lost += max(missing - verifier.withheld, 0)
        withheld += verifier.withheld
        longestGap = max(longestGap, verifier.longestGap)
        if verifier.isSilent { silentTracks += 1 }
    }

    /// The counts that add up over loops and subtract over time.
    private static let counts: [any WritableKeyPath<Self, Int> & Sendable] = [
        \.packetsMade, \.framesMade, \.packets, \.bytes, \.duplicates, \.reordered, \.restored, \.unreadable,
        \.framesDecoded,
    ]

    mutating func merge(_ other: Self) {
        for count in Self.counts { self[keyPath: count] += other[keyPath: count] }
        lost += other.lost
        withheld += other.withheld
        longestGap = max(longestGap, other.longestGap)
        silentTracks += other.silentTracks
        delays.merge(other.delays)
    }

    /// The counts since `earlier`. Losses, gaps and silent tracks already count from the start of the window.
    func since(_ earlier: Self) -> Self {
        var difference = self
        for count in Self.counts { difference[keyPath: count] -= earlier[keyPath: count] }
        difference.delays = delays.since(earlier.delays)
        return difference
    }
}

/// What one subscriber behind a link of its own has received.
struct ViewerTally: Sendable {
    var bytes = 0
    var framesDecoded = 0
    var freezes = 0
    var freezeTime = Interval.zero
    /// Changes of the source that plays: of the simulcast layer or of the publisher.
    var switches = 0
    var link = LinkStatistics()
}

/// The counts of one loop, or of all loops.
struct LoadTally: Sendable {
    var takenAt = Instant(nanoseconds: 0)
    var loops = 1
    var video = MediaTally()
    var audio = MediaTally()
    var sockets = LoopCounters()
    var nackedPackets = 0
    /// Duplicates that the transport dropped before their stamps were read.
    var copiesDropped = 0
    var keyFrameRequests = 0
    /// The duration of each turn of the loop.
    var turns = DelayHistogram()
    /// How late each frame and audio packet was sent.
    var lateness = DelayHistogram()
    var busy = Interval.zero
    /// Datagrams dropped because the batch was full.
    var batchDrops = 0
    /// Subscribers behind links of their own, by number.
    var viewers: [Int: ViewerTally] = [:]

    var packets: Int { video.packets + audio.packets }
    var bytes: Int { video.bytes + audio.bytes }
    var lost: Int { video.lost + audio.lost }
    var silentTracks: Int { video.silentTracks + audio.silentTracks }
    var sendDrops: UInt64 {
        sockets.sendQueueDrops + sockets.sendErrorDrops + sockets.sendEndpointDrops + UInt64(batchDrops)
    }

    /// The counts that add up over loops and subtract over time.
    private static let counts: [any WritableKeyPath<Self, Int> & Sendable] = [
        \.nackedPackets, \.copiesDropped, \.keyFrameRequests, \.batchDrops,
    ]

    mutating func merge(_ other: Self) {
        takenAt = max(takenAt, other.takenAt)
        loops += other.loops
        video.merge(other.video)
        audio.merge(other.audio)
        sockets.merge(other.sockets)
        for count in Self.counts { self[keyPath: count] += other[keyPath: count] }
        turns.merge(other.turns)
        lateness.merge(other.lateness)
        busy = busy + other.busy
        viewers.merge(other.viewers) { $1 }
    }

    func since(_ earlier: Self) -> Self {
        var difference = self
        difference.video = video.since(earlier.video)
        difference.audio = audio.since(earlier.audio)
        difference.sockets.datagramsReceived &-= earlier.sockets.datagramsReceived
        difference.sockets.kernelReceiveDrops &-= earlier.sockets.kernelReceiveDrops
        difference.sockets.receiveSizeDrops &-= earlier.sockets.receiveSizeDrops
        difference.sockets.datagramsSent &-= earlier.sockets.datagramsSent
        difference.sockets.sendQueued &-= earlier.sockets.sendQueued
        difference.sockets.sendQueueDrops &-= earlier.sockets.sendQueueDrops
        difference.sockets.sendErrorDrops &-= earlier.sockets.sendErrorDrops
        difference.sockets.sendEndpointDrops &-= earlier.sockets.sendEndpointDrops
        for count in Self.counts { difference[keyPath: count] -= earlier[keyPath: count] }
        difference.turns = turns.since(earlier.turns)
        difference.lateness = lateness.since(earlier.lateness)
        difference.busy = busy - earlier.busy
        return difference
    }
}
