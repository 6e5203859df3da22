import Client
import EventLoop
import Wire

/// What the clients of a loop, or of all, have sent and received of one kind of media.
struct MediaTally: Sendable {
    /// Made by the publishers.
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
    var longestGap = Interval.zero
    /// Tracks that nothing has arrived on.
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
        lost += made.map { verifier.lost(ofMade: $0) } ?? verifier.lost
        longestGap = max(longestGap, verifier.longestGap)
        if verifier.packets + verifier.unreadable == 0 { silentTracks += 1 }
    }

    mutating func merge(_ other: Self) {
        packetsMade += other.packetsMade
        framesMade += other.framesMade
        packets += other.packets
        bytes += other.bytes
        duplicates += other.duplicates
        reordered += other.reordered
        restored += other.restored
        unreadable += other.unreadable
        framesDecoded += other.framesDecoded
        lost += other.lost
        longestGap = max(longestGap, other.longestGap)
        silentTracks += other.silentTracks
        delays.merge(other.delays)
    }

    /// What was added since `earlier`. Losses, gaps and silence are counted from the window's start already.
    func since(_ earlier: Self) -> Self {
        var difference = self
        difference.packetsMade -= earlier.packetsMade
        difference.framesMade -= earlier.framesMade
        difference.packets -= earlier.packets
        difference.bytes -= earlier.bytes
        difference.duplicates -= earlier.duplicates
        difference.reordered -= earlier.reordered
        difference.restored -= earlier.restored
        difference.unreadable -= earlier.unreadable
        difference.framesDecoded -= earlier.framesDecoded
        difference.delays = delays.since(earlier.delays)
        return difference
    }
}

/// Everything that a loop, or all, have counted.
struct LoadTally: Sendable {
    var takenAt = Instant(nanoseconds: 0)
    var loops = 1
    var video = MediaTally()
    var audio = MediaTally()
    var sockets = LoopCounters()
    var nackedPackets = 0
    /// Copies of what had come already, which the transport dropped before anybody could see their stamps.
    var copiesDropped = 0
    var keyFrameRequests = 0
    /// The time that each turn of the loop took.
    var turns = DelayHistogram()
    /// How late each frame and audio packet was made.
    var lateness = DelayHistogram()
    var busy = Interval.zero
    /// Datagrams lost before they got to a socket.
    var batchDrops = 0

    var packets: Int { video.packets + audio.packets }
    var bytes: Int { video.bytes + audio.bytes }
    var lost: Int { video.lost + audio.lost }
    var silentTracks: Int { video.silentTracks + audio.silentTracks }
    var sendDrops: UInt64 {
        sockets.sendQueueDrops + sockets.sendErrorDrops + sockets.sendEndpointDrops + UInt64(batchDrops)
    }

    mutating func merge(_ other: Self) {
        takenAt = max(takenAt, other.takenAt)
        loops += other.loops
        video.merge(other.video)
        audio.merge(other.audio)
        sockets.merge(other.sockets)
        nackedPackets += other.nackedPackets
        copiesDropped += other.copiesDropped
        keyFrameRequests += other.keyFrameRequests
        turns.merge(other.turns)
        lateness.merge(other.lateness)
        busy = busy + other.busy
        batchDrops += other.batchDrops
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
        difference.nackedPackets -= earlier.nackedPackets
        difference.copiesDropped -= earlier.copiesDropped
        difference.keyFrameRequests -= earlier.keyFrameRequests
        difference.turns = turns.since(earlier.turns)
        difference.lateness = lateness.since(earlier.lateness)
        difference.busy = busy - earlier.busy
        difference.batchDrops -= earlier.batchDrops
        return difference
    }
}
