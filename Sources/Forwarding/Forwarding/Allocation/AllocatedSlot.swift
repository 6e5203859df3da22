import Base
import MediaTypes
import Wire

/// What the allocator remembers of a slot from call to call.
struct AllocatedSlot: Sendable {
    let id: SSRC
    var preference: LayerPreference
    private(set) var importance: SlotImportance
    /// The layers that it was given last; `nil` for none.
    var held: LayerStep?
    var target = TargetLayer.unknown
    /// No layers were decided yet since its source flows.
    var isNew = true
    /// Until then upgrades need not wait.
    var freshUntil: Instant
    var switchedAt: Instant?
    var awaitsSince: Instant?
    var peak = ScreenPeak()
    /// It began while the rate was a guess, and has no picture yet.
    var beganByGuess = false

    /// A slot that was just connected shows as soon as possible what the rate carries.
    static let connectTime = Interval.seconds(5)
    /// So does one whose preference changed.
    static let preferenceTime = Interval.seconds(1)
    /// After a switch no upgrade for this long.
    static let switchSpacing = Interval.seconds(2)
    /// A key frame that takes longer does not hold up other slots.
    static let keyFrameTime = Interval.seconds(3)

    init(_ request: LayerRequest, at now: Instant) {
        id = request.id
        preference = request.preference
        importance = request.importance
        freshUntil = now + Self.connectTime
    }

    mutating func update(_ request: LayerRequest, at now: Instant) {
        if request.preference != preference || request.importance != importance {
            preference = request.preference
            importance = request.importance
            freshUntil = max(freshUntil, now + Self.preferenceTime)
        }
        if request.isPlaying { beganByGuess = false }
        awaitsSince = request.isAwaitingKeyFrame && request.isPlaying ? awaitsSince ?? now : nil
    }

    /// How much more a shared screen costs than its streams carry now, in thousandths.
    mutating func claim(_ request: LayerRequest, at now: Instant) -> Int {
        guard request.isScreen, let table = request.table else { return 1_000 }
        let ranked = RankedEncodings(table, cap: preference.cap)
        guard ranked.count > 0 else { return 1_000 }
        let top = table.encodings[ranked[ranked.count - 1]]
        return peak.note(top.bitrate, of: top.stream, at: now)
    }

    /// How many steps of a ladder the slot has. Layers that are no longer in it count as the highest ones below them.
    func heldCount(of steps: ArraySlice<LayerStep>) -> Int {
        guard let held, !steps.isEmpty else { return 0 }
        var best: Int?
        for index in steps.indices {
            let step = steps[index]
            if step.stream == held.stream, step.spatialID == held.spatialID, step.temporalID == held.temporalID {
                return index - steps.startIndex + 1
            }
            if step.order <= held.order, best.map({ steps[$0].order < step.order }) ?? true { best = index }
        }
        return best.map { $0 - steps.startIndex + 1 } ?? 1
    }

    /// When an upgrade may come; `nil` for now.
    func upgradesAt(_ now: Instant) -> Instant? {
        guard now >= freshUntil, let switchedAt, switchedAt + Self.switchSpacing > now else { return nil }
        return switchedAt + Self.switchSpacing
    }

    /// Takes what is decided.
    mutating func take(_ step: LayerStep, at now: Instant) {
        if !isNew, step.target != held?.target { switchedAt = now }
        held = step
        target = step.target
        isNew = false
    }

    mutating func takeNothing(at now: Instant) {
        if held != nil { switchedAt = now }
        held = nil
        target = .nothing
        isNew = false
    }

    /// Nothing of its source flows.
    mutating func rest(_ request: LayerRequest, at now: Instant) {
        held = nil
        isNew = true
        freshUntil = max(freshUntil, now + Self.connectTime)
        let unlimited = request.unlimitedTarget
        guard case .layer = unlimited, case .layer(let stream, _, _) = target,
            request.table?.encodings.contains(where: { $0.stream == stream.rawValue }) ?? false
        else {
            target = unlimited
            return
        }
    }
}
