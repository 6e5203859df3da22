import Base
import Client
import MediaTypes
import Wire

@testable import Forwarding

/// What a viewer sees of one simulcast source: the receiver of libwebrtc in short. A frame of VP8 is decodable when the frame
/// of the lowest temporal layer before it was decoded, and one of a higher layer also needs every picture since.
final class PictureModel {
    /// A simulcast layer and its highest temporal layer.
    struct Step: Comparable, CustomStringConvertible {
        var layer: Int
        var temporal: Int
        var description: String { "\(layer).\(temporal)" }
        static func < (left: Self, right: Self) -> Bool { (left.layer, left.temporal) < (right.layer, right.temporal) }
    }

    private struct Frame {
        let picture: Int
        let tl0: UInt8
        let temporal: Int
        let isKey: Bool
        let layer: Int
        let madeAt: Instant
        var missing: Int
    }

    /// Frames that show which temporal layers are sent: the period of the pattern.
    private static let window = 4

    private var unwrapped: Int?
    private var frames: [Int: Frame] = [:]
    private var lastPicture: Int?
    private var lastTL0: UInt8 = 0
    private var lastDecodedAt: Instant?
    private var lastPacketAt: Instant?
    /// The least delay that the node told, and what of it is reached: the receiver moves by 100 ms a second.
    private var toldDelay = Interval.zero
    private var delay = Interval.zero
    /// From the making of a frame until it can be decoded, at least.
    private var leastTransit: Interval?
    private var lastShownAt: Instant?
    private var requestedAt: Instant?
    private var usualGap: Interval?
    private var recent: [Int] = []
    private var shownLayer: Int?
    private(set) var firstFrameAt: Instant?
    private(set) var framesDecoded = 0
    /// When another step began to show.
    private(set) var changes: [(at: Instant, step: Step)] = []
    /// Gaps that W3C webrtc-stats takes for freezes: when each ended, and its length.
    private(set) var freezes: [(end: Instant, length: Interval)] = []
    /// Times between two frames, when each ended.
    private(set) var longestGap = Interval.zero

    init(_ host: World.Host) {
        guard let track = host.watched(.video) else { return }
        attach(to: track)
    }

    init(_ track: ReceivedTrack) { attach(to: track) }

    private func attach(to track: ReceivedTrack) {
        let previous = track.tap
        track.tap = { [weak self] packet, description, now in
            previous?(packet, description, now)
            let payload = packet.extracting(description.payloadRange)
            guard payload.byteCount > SyntheticVideo.stampOffset,
                let stamp = MediaStamp(payload.extracting(SyntheticVideo.stampOffset..<payload.byteCount))
            else { return }
            if description.playoutDelay.isPresent,
                let told = PlayoutDelay(packet.extracting(description.playoutDelay.range))
            {
                self?.toldDelay = .milliseconds(Int(told.minimumUnits) * 10)
            }
            self?.received(
                stamp,
                pictureID: Int(description.pictureID),
                tl0: description.tl0,
                temporal: Int(payload.byte(at: 5) >> 6),
                at: now
            )
        }
    }

    /// The step that shows now.
    var step: Step? { changes.last?.step }

    /// Whether the viewer gets packets and no picture, so that its decoder asks for a key frame.
    func wantsKeyFrame(at now: Instant) -> Bool {
        guard let lastPacketAt, now - lastPacketAt < .milliseconds(500),
            now - (requestedAt ?? now - .seconds(1)) >= .milliseconds(200),
            now - (lastDecodedAt ?? lastPacketAt) > .milliseconds(1_500)
        else { return false }
        requestedAt = now
        return true
    }

    /// When a step or a better one began to show that stayed for a while; `nil` for never.
    /// - Parameter end: of the run.
    func began(_ step: Step, after start: Instant, lasting time: Interval = .seconds(1), until end: Instant) -> Instant?
    {
        var shown: Instant?
        for (at, other) in shownSteps(until: end) + [(end, Self.nothing)] {
            if other >= step {
                shown = shown ?? max(at, start)
            } else if let began = shown {
                if at - began >= time, at > start { return began }
                shown = nil
            }
        }
        return nil
    }

    private static let nothing = Step(layer: -1, temporal: 0)
    /// A picture that stands still for longer shows nothing.
    private static let stillMax = Interval.seconds(1)

    /// When another step began to show, or nothing.
    private func shownSteps(until end: Instant) -> [(at: Instant, step: Step)] {
        var stops = freezes.filter { $0.length > Self.stillMax }
        if let last = lastDecodedAt, end - last > Self.stillMax { stops.append((end, end - last)) }
        var steps = changes
        for stop in stops {
            guard let before = changes.last(where: { $0.at < stop.end }) else { continue }
            steps.append((stop.end - stop.length, Self.nothing))
            if !changes.contains(where: { $0.at == stop.end }) { steps.append((stop.end, before.step)) }
        }
        return steps.sorted { $0.at < $1.at }
    }

    /// Changes from one step to another within a time; the first picture is none.
    func changeCount(from start: Instant, until end: Instant) -> Int {
        changes.dropFirst().count { $0.at >= start && $0.at < end }
    }

    /// The part of a time that is frozen. A freeze that has not ended counts.
    func frozenShare(from start: Instant, until end: Instant) -> Double {
        var frozen = Interval.zero
        for freeze in freezes where freeze.end > start && freeze.end - freeze.length < end {
            frozen = frozen + (min(freeze.end, end) - max(freeze.end - freeze.length, start))
        }
        let last = max(lastDecodedAt ?? start, start)
        if end - last > .milliseconds(400) { frozen = frozen + (end - last) }
        return frozen.seconds / (end - start).seconds
    }

    /// The longest freeze that ended within a time.
    func longestFreeze(from start: Instant, until end: Instant) -> Double {
        let ended = freezes.filter { $0.end > start && $0.end <= end }.map(\.length.seconds).max() ?? 0
        return max(ended, (end - (lastDecodedAt ?? start)).seconds > 0.4 ? (end - (lastDecodedAt ?? start)).seconds : 0)
    }

    private func received(_ stamp: MediaStamp, pictureID: Int, tl0: UInt8, temporal: Int, at now: Instant) {
        lastPacketAt = now
        let step = unwrapped.map { ((pictureID - $0) & 0x7FFF ^ 0x4000) - 0x4000 } ?? 0
        let picture = (unwrapped ?? pictureID) + step
        unwrapped = max(unwrapped ?? picture, picture)
        if let lastPicture, picture <= lastPicture { return }
        var frame =
            frames[picture]
            ?? Frame(
                picture: picture,
                tl0: tl0,
                temporal: temporal,
                isKey: stamp.isKeyFrame,
                layer: Int((stamp.source - 1) / 0x10000),
                madeAt: stamp.sentAt,
                missing: Int(stamp.packetsInFrame)
            )
        frame.missing -= 1
        frames[picture] = frame
        if frame.missing == 0 { while let next = nextDecodable { decoded(next, at: now) } }
    }

    private var nextDecodable: Frame? {
        frames.values.filter { $0.missing <= 0 && isDecodable($0) }.min { $0.picture < $1.picture }
    }

    private func isDecodable(_ frame: Frame) -> Bool {
        guard let lastPicture else { return frame.isKey }
        if frame.isKey { return true }
        return frame.temporal == 0
            ? frame.tl0 == lastTL0 &+ 1 : frame.tl0 == lastTL0 && frame.picture == lastPicture + 1
    }

    private func decoded(_ frame: Frame, at now: Instant) {
        frames = frames.filter { $0.key > frame.picture }
        lastPicture = frame.picture
        if frame.temporal == 0 { lastTL0 = frame.tl0 }
        framesDecoded += 1
        firstFrameAt = firstFrameAt ?? now
        let shownAt = shownAt(frame, decodedAt: now)
        if let lastShownAt { noteGap(shownAt - lastShownAt, at: shownAt) }
        lastShownAt = shownAt
        lastDecodedAt = now
        noteStep(of: frame, at: now)
    }

    /// Without a delay that was told, a frame shows when it is decoded.
    private func shownAt(_ frame: Frame, decodedAt now: Instant) -> Instant {
        let transit = min(leastTransit ?? now - frame.madeAt, now - frame.madeAt)
        leastTransit = transit
        if let lastDecodedAt {
            let step = Interval(nanoseconds: (now - lastDecodedAt).nanoseconds / 10)
            delay = delay < toldDelay ? min(delay + step, toldDelay) : max(delay - step, toldDelay)
        }
        return max(now, frame.madeAt + transit + delay, lastShownAt ?? now)
    }

    private func noteGap(_ gap: Interval, at now: Instant) {
        longestGap = max(longestGap, gap)
        let usual = usualGap ?? gap
        if gap > max(usual * 3, usual + .milliseconds(150)) { freezes.append((now, gap)) }
        usualGap = Interval(nanoseconds: usual.nanoseconds + (gap.nanoseconds - usual.nanoseconds) / 30)
    }

    private func noteStep(of frame: Frame, at now: Instant) {
        if frame.layer != shownLayer {
            shownLayer = frame.layer
            recent = []
            changes.append((now, Step(layer: frame.layer, temporal: 0)))
        }
        recent = recent.suffix(Self.window - 1) + [frame.temporal]
        let step = Step(layer: frame.layer, temporal: recent.max() ?? 0)
        let isBeginning = recent.count < Self.window
        guard let last = changes.last, last.step != step, !isBeginning || step > last.step else { return }
        // The temporal layers of a simulcast layer show within its first frames, and belong to the change to it.
        if now - last.at < .milliseconds(600), last.step.layer == step.layer, step > last.step {
            changes[changes.count - 1].step = step
        } else {
            changes.append((now, step))
        }
    }
}

extension PlayoutDelay {
    /// `nil` unless `data` has three bytes and the minimum does not exceed the maximum.
    init?(_ data: RawSpan) {
        guard data.byteCount == 3 else { return nil }
        let value = data.bigEndianUInt24(at: 0)
        self.init(minimumUnits: UInt16(value >> 12), maximumUnits: UInt16(value & 0xFFF))
    }
}
