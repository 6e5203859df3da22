import Base
import Client
import MediaTypes
import Wire

@testable import Forwarding

/// What arrives at a client, in figures: less than a ``Recording`` keeps, for runs of many clients.
final class Arrivals {
    /// One m-section.
    struct Section {
        fileprivate(set) var packets = 0
        private(set) var lowest = Int64.max
        private(set) var highest = Int64.min
        /// The source numbers in the stamps, of simulcast layers that of the lowest.
        private(set) var sources: Set<UInt32> = []
        /// The source of the newest packet, and when it came.
        private(set) var newest: (source: UInt32, at: Instant)?

        /// Numbers between the lowest and the highest that never came; negative when some came twice.
        var missing: Int { packets == 0 ? 0 : Int(highest - lowest) + 1 - packets }

        fileprivate mutating func add(_ sequence: Int64, _ stamp: MediaStamp?, at now: Instant) {
            packets += 1
            lowest = min(lowest, sequence)
            highest = max(highest, sequence)
            guard let stamp else { return }
            let source = (stamp.source - 1) % 0x10000 + 1
            if newest?.source != source { sources.insert(source) }
            newest = (source, now)
        }
    }

    private(set) var sections: [MID: Section] = [:]

    /// Looks at the tracks of a client's peer that are not looked at so far.
    func attach(to host: World.Host, of world: World) {
        for track in host.peer?.tracks ?? [] where sections[track.id.mid] == nil {
            let mid = track.id.mid
            sections[mid] = Section()
            let previous = track.tap
            let stampOffset = track.parameters.kind == .video ? SyntheticVideo.stampOffset : 0
            track.tap = { [unowned self, unowned world] packet, description, now in
                previous?(packet, description, now)
                let payload = packet.extracting(description.payloadRange)
                let stamped = payload.byteCount > stampOffset
                let stamp = stamped ? MediaStamp(payload.extracting(stampOffset..<payload.byteCount)) : nil
                sections[mid]?.add(description.sequence.rawValue, stamp, at: now)
                world.trace?.note(payload, of: description, at: now)
            }
        }
    }
}
