public import Base
import MediaTypes
import Wire

/// The state of the loop's overload in its core.
struct OverloadState {
    var controller = OverloadController()
    /// Totals at the last sample, and when streams were last counted from 0.
    var packetsAtSample: UInt64 = 0
    var receivedAtMeasure: UInt64 = 0
    var foreignAtMeasure: UInt64 = 0
    var renewedAt = Instant(nanoseconds: .min / 2)

    /// How long a stream is held unless that is renewed. It ends by itself, because a message to another loop may be
    /// lost.
    static let holdTime = Interval.milliseconds(800)
    static let renewalInterval = Interval.milliseconds(200)
}

/// Shedding video while the loop does not keep up.
extension Forwarder {
    /// Takes a sample of the loop that the core runs on, and sheds video of the heaviest share while the loop is
    /// overloaded. To be called about ten times a second, before ``endTurn(at:into:)``.
    public func noteLoad(_ sample: LoopSample, at now: Instant) {
        let packets = counters.rtpReceived &+ counters.rtpSent
        let wasOverloaded = overload.controller.isOverloaded
        let decision = overload.controller.observe(sample, packets: packets &- overload.packetsAtSample)
        overload.packetsAtSample = packets
        switch decision {
        case .goOn: break
        case .measure: beginMeasuring()
        case .shed: shed(at: now)
        }
        if overload.controller.isOverloaded, !wasOverloaded { counters.overloads &+= 1 }
        renewHolds(at: now)
    }

    /// Received datagrams that are not authentic RTP.
    private var foreign: UInt64 { counters.datagramsReceived &- counters.rtpReceived }

    private func beginMeasuring() {
        overload.receivedAtMeasure = counters.datagramsReceived
        overload.foreignAtMeasure = foreign
        for stream in streams.all { stream.packetsAtMeasure = stream.packetsReceived }
    }

    private func shed(at now: Instant) {
        let loads = streams.all.map { stream in
            let track = stream.track
            // A mirror's peer is on another loop.
            let share = peer(track.id.peer)?.share ?? track.slots.first?.peer.share ?? 0
            let isHeld = stream.shedding.isActive
            let copies = isHeld ? 0 : track.playingCount(of: stream) + track.exports.count
            return OverloadController.StreamLoad(
                stream: stream.id,
                share: share,
                packets: (stream.packetsReceived &- stream.packetsAtMeasure) * UInt64(1 + copies),
                isSheddable: track.parameters.kind == .video && !isHeld
            )
        }
        let chosen = overload.controller.shed(
            loads,
            received: counters.datagramsReceived &- overload.receivedAtMeasure,
            foreign: foreign &- overload.foreignAtMeasure
        )
        counters.overloadLayersShed &+= UInt64(chosen.count)
        overload.renewedAt = now
        for id in chosen {
            if let stream = streams[id] { hold(stream, at: now) }
        }
    }

    /// Renews the holds of the streams that are shed.
    private func renewHolds(at now: Instant) {
        guard overload.controller.holdsAny, now - overload.renewedAt >= OverloadState.renewalInterval else { return }
        overload.renewedAt = now
        overload.controller.forget { streams[$0] == nil }
        for id in overload.controller.held {
            if let stream = streams[id] { hold(stream, at: now) }
        }
    }

    /// Drops a stream's packets for a while where it is received: on this loop or at its origin. It resumes at a key
    /// frame.
    func hold(_ stream: ReceivedStream, at now: Instant) {
        let track = stream.track
        if let origin = track.origin {
            origin.requestHold(of: stream.originID)
            return
        }
        guard stream.shedding.hold(until: now + OverloadState.holdTime) else { return }
        // What is missing of it is not asked for: it begins anew.
        stream.losses = NACKTracker()
        track.selectLayers(at: now)
        markDirty(track.id.peer)
    }
}
