import Base
import MediaTypes
import Wire

/// Which layers the peer is sent.
extension Peer {
    /// What audio takes of the rate, for each slot that plays.
    private static let audioRateMin = 40_000
    /// IP, UDP and SRTP on top of a packet as it was received.
    private static let audioOverhead = 20_000

    /// Decides again what a slot is sent, after its preference or its source's table changed. Where the peer's rate is
    /// limited, its slots are decided together.
    func allocateLayers(to slot: SendSlot, at now: Instant) {
        if sendRate != nil, slot.parameters.kind == .video {
            allocateLayers(at: now)
        } else {
            let request = LayerRequest(preference: slot.preference, table: slot.source?.table)
            slot.setTarget(request.unlimitedTarget, at: now)
        }
    }

    /// Divides the rate over the video slots. Audio is sent whatever the rate is.
    func allocateLayers(at now: Instant) {
        guard let sendRate, !isAllocating else { return }
        isAllocating = true
        defer { isAllocating = false }
        var audio = 0
        layerRequests.removeAll(keepingCapacity: true)
        for slot in slots {
            guard let source = slot.source else { continue }
            if slot.parameters.kind == .video {
                layerRequests.append(
                    LayerRequest(
                        id: slot.parameters.ssrc,
                        preference: slot.preference,
                        table: source.table,
                        isPlaying: slot.isPlaying,
                        isAwaitingKeyFrame: slot.playingBeforeSwitch != nil
                    )
                )
            } else if slot.layer != .nothing {
                audio += max(source.target?.bitrate ?? 0, Self.audioRateMin) + Self.audioOverhead
            }
        }
        if !layerRequests.isEmpty || audio > 0 { sendRate.prepare(at: now) }
        let rate = sendRate.sustained
        let allocation = allocator.allocate(
            layerRequests,
            rate: .limited(bitsPerSecond: max(rate - audio, 0)),
            carried: sendRate.carried.map { max($0 - audio, 0) },
            bottleneck: sendRate.triedMax.map { max($0 - audio, 0) },
            isGuess: sendRate.isGuess,
            carriedLooks: sendRate.carriedLooks,
            at: now
        )
        divided = DividedRate(
            rate: rate,
            layers: allocation.allocated + audio,
            retryAt: allocation.retryAt,
            isWhole: allocation.isWhole,
            settled: allocation.isSteady && sendRate.carried == nil ? allocation.demand + audio : nil,
            settledUntil: now + Self.settledTime
        )
        sendRate.setDemand(allocation.demand + audio, at: now)
        sendRate.setUpgrade(allocation.upgrade.map { $0 + audio }, isBarred: allocation.isUpgradeBarred)
        var index = 0
        for slot in slots where slot.parameters.kind == .video && slot.source != nil {
            slot.setTarget(allocation.targets[index], at: now)
            index += 1
        }
        relieveSwitches(of: sendRate, at: now)
    }

    /// What the layers cost is looked at again after this long, however much the rate carries. With a second the case Dips of the
    /// server's scorecard freezes a tenth longer.
    private static let settledTime = Interval.milliseconds(800)

    /// Whether a division of the rate would change nothing: all that the slots want is allocated and plays, and the rate
    /// carries it with room. Most viewers are in this state, and a division costs more than the report that leads to it.
    func isSettled(_ sendRate: SendRate, at now: Instant) -> Bool {
        guard let settled = divided.settled, sendRate.sustained >= settled, now < divided.settledUntil,
            sendRate.carried == nil
        else { return false }
        // A slot that waits for a key frame asks again with each division.
        for slot in slots where slot.parameters.kind == .video && slot.isAwaitingStream { return false }
        return true
    }

    /// A longer queue is not left to a key frame of lower layers.
    private static let switchQueueMax = Interval.milliseconds(200)

    /// Slots that wait for a key frame of lower layers play higher ones until then. When the rate does not carry those, their
    /// upper temporal layers are left out at once, and all of them when a queue builds up.
    private func relieveSwitches(of sendRate: SendRate, at now: Instant) {
        var excess = 0
        for slot in slots { excess += slot.excessBeforeSwitch }
        let isShort = excess > 0 && divided.layers + excess > sendRate.target
        let queue = isShort ? max(sendRate.queueDelay, transport.egress.queueDelay) : .zero
        for slot in slots where slot.parameters.kind == .video {
            slot.limitBeforeSwitch(isShort && slot.excessBeforeSwitch > 0, at: now)
            if queue > Self.switchQueueMax, slot.excessBeforeSwitch > 0 { slot.stopBeforeSwitch() }
        }
    }
}
