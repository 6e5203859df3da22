import Base
import MediaTypes
import Wire

/// Limits what a peer publishes: beyond its rate whole layers of video are shed, the highest first, and audio last.
extension Peer {
    /// Decides on a packet that may be beyond the peer's rate, or is of a shed stream.
    ///
    /// A stream is shed until a key frame, so that no viewer gets incomplete pictures. It resumes when the rate has
    /// room again.
    /// - Returns: why the packet is dropped; `nil` when it is accepted.
    @inline(never)
    func holdBack(
        _ stream: ReceivedStream,
        _ track: ReceivedTrack,
        _ description: PacketDescription,
        bytes: Int,
        core: Forwarder,
        at now: Instant
    ) -> DropReason? {
        if stream.shedding.isActive {
            if resume(stream, track, description, bytes: bytes, core: core, at: now) { return nil }
            return stream.shedding.isForOverload ? .loopOverload : .publishRateVideo
        }
        guard track.parameters.kind == .video else {
            return takeIn(bytes: bytes, isAudio: true, at: now) ? nil : .publishRateAudio
        }
        let victim = heaviestVideo ?? stream
        victim.shedding.begin(at: now)
        // What is missing of it is not asked for: it begins anew.
        victim.losses = NACKTracker()
        relieveLimiter(at: now)
        core.counters.layersShed &+= 1
        victim.track.selectLayers(at: now)
        core.schedule.markDirty(self)
        return victim === stream ? .publishRateVideo : nil
    }

    /// The layer to be shed first: the peer's video stream of the highest rate.
    private var heaviestVideo: ReceivedStream? {
        streams.filter { $0.track.parameters.kind == .video && !$0.shedding.isActive }
            .max { $0.rateNow < $1.rateNow }
    }

    /// Resumes a shed stream, if it can.
    private func resume(
        _ stream: ReceivedStream,
        _ track: ReceivedTrack,
        _ description: PacketDescription,
        bytes: Int,
        core: Forwarder,
        at now: Instant
    ) -> Bool {
        guard stream.shedding.mayEnd(at: now), limiterHasRoom(at: now), !description.isRTXRecovered else {
            return false
        }
        guard description.startsKeyFrame, takeIn(bytes: bytes, at: now) else {
            stream.keyFrames.want(at: now)
            core.schedule.markDirty(self)
            return false
        }
        stream.shedding.end()
        track.selectLayers(at: now)
        return true
    }
}
