import Base
import MediaTypes
import Wire

/// A slot that is to play a stream of which a key frame has just come begins with that one. Another would be asked for in vain:
/// browsers send none within 300 ms of the last (libwebrtc's minimum interval between key frames), and meanwhile a path that got
/// narrower goes on with a layer that it does not carry. Several viewers that begin together cost the publisher one key frame.
extension SendSlot {
    /// What came after the key frame takes no longer than this to leave, where another layer plays until then.
    private static let catchUpTimeMax = Interval.milliseconds(200)
    /// The same where nothing plays, with all that waits. When nine pictures begin on 3 Mbit/s, 50 ms make the path's queue a
    /// sixth longer, and 200 ms two fifths.
    private static let startCatchUpTimeMax = Interval.milliseconds(25)
    /// The next packet, with which the slot catches up, has to be near: a source of ten frames a second sends within this time.
    private static let pauseMax = Interval.milliseconds(100)
    /// Between the timestamps of frames that leave ahead of their time: 2 ms.
    private static let timestampStepsPerSecond = 500

    /// The first packet of the key frame of the wanted stream with which the slot can begin; `nil` if another has to come.
    func beginning(of stream: ReceivedStream, at now: Instant) -> ExtendedSequenceNumber? {
        guard parameters.kind == .video, now - stream.lastPacketAt <= Self.pauseMax else { return nil }
        let egress = peer.transport.egress
        let time = isPlaying ? Self.catchUpTimeMax : Self.startCatchUpTimeMax
        let waiting = isPlaying ? 0 : egress.waiting.bytes
        let bytesMax = unsafe egress.state.pointee.pacer.bytes(in: time) - waiting
        let oldest = now - KeyFrameRequester.spacing
        guard let first = stream.beginning(since: max(overflowedAt ?? oldest, oldest), bytesMax: bytesMax),
            !hasSentLater(than: first, of: stream)
        else { return nil }
        return first
    }

    /// Sends or queues what came of the wanted stream since its newest key frame.
    /// - Parameter packet: the newest packet of it.
    /// - Returns: `false`, having done nothing, where the packet needs none before it, or another key frame has to come.
    func catchUp(with packet: UnsafePointer<PendingPacket>, _ turn: SendTurn, into batch: DatagramBatch) -> Bool {
        let streamID = unsafe packet.pointee.streamID
        let newest = unsafe packet.pointee.description
        guard unsafe state.pointee.playing != streamID, unsafe state.pointee.wanted == streamID,
            !newest.startsKeyFrame, !isKeyFrameQueued
        else { return false }
        let stream = unsafe packet.pointee.stream.object
        guard !stream.history.isLate(newest.sequence), let first = beginning(of: stream, at: turn.now) else {
            return false
        }
        catchesUp = true
        var sequence = first
        repeat {
            _ = stream.history.withPacket(sequence) { packet, description in
                unsafe stream.withPending(packet, description) { unsafe sendOrQueue($0, turn, into: batch) }
            }
            sequence = sequence.advanced(by: 1)
        } while unsafe sequence <= newest.sequence && (state.pointee.playing == streamID || isKeyFrameQueued)
        return true
    }

    /// The stream that begins has timestamps of its own, of which those that leave may be ahead: they never go back.
    /// - Parameter aligned: the outgoing timestamp that keeps the media's own timing, where it is known.
    func noteTiming(of description: PacketDescription, _ aligned: RTPTimestamp?, at now: Instant) {
        defer { catchesUp = false }
        timestampOffsetBehind = nil
        guard let segment = unsafe state.pointee.rewriter.currentSegment else { return }
        let timestamp = segment.timestamp(description.timestamp)
        let clockRate = parameters.kind.clockRate
        let age = Int((now - description.receivedAt).nanoseconds / 1_000) * clockRate / 1_000_000
        let own = aligned ?? (catchesUp ? timestamp.advanced(by: -age) : timestamp)
        let lead = own.distance(to: timestamp)
        guard lead > 0, lead < clockRate else { return }
        timestampOffsetBehind = own.rawValue &- description.timestamp.rawValue
    }

    /// Lets timestamps that are ahead of the media's own timing wait for it, from one frame to the next.
    func followTiming(of description: PacketDescription) {
        let rewriter = rewriter
        guard let offset = timestampOffsetBehind, let segment = rewriter.currentSegment,
            let newest = rewriter.newestSource, let sent = rewriter.newestTimestamp?.timestamp,
            description.sequence > newest.sequence, rewriter.follows(description.sequence, in: segment),
            newest.timestamp.distance(to: description.timestamp) > 0
        else { return }
        let own = RTPTimestamp(rawValue: description.timestamp.rawValue &+ offset)
        let soonest = sent.advanced(by: parameters.kind.clockRate / Self.timestampStepsPerSecond)
        let isInTime = soonest.distance(to: own) >= 0
        unsafe state.pointee.rewriter.moveTimestamps(to: isInTime ? own : soonest, at: description)
        if isInTime { timestampOffsetBehind = nil }
    }
}
