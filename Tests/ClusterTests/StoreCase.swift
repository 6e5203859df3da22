import ChannelTypes
import Cluster
import MediaTypes
import TestSupport
import Testing

/// A store whose clock the tests set forward.
protocol TestedStore: ClusterStore {
    func advance(milliseconds: Int) async throws
    /// Puts back what ``keep()`` kept.
    func restore() async throws
    func keep() async throws
    func wipe() async throws
}

/// What every store has to do, the model and the real one.
enum StoreCase: String, CaseIterable, Sendable {
    case incarnationsRise, incarnationsSkipAfterSilence, incarnationsSkipWhileNodesMayBeUnheard
    case aRecordIsTold, onlyChangesAreTold, changesComeInParts
    case aLowerIncarnationIsFenced, aHigherIncarnationReplaces, anUnknownNodeIsAskedForItsRecord
    case silenceMakesAbsent, absenceEndsWithABeat, nobodyIsAbsentInGrace, theForgottenAreGone
    case aWipeChangesTheGeneration, anOlderCopyChangesTheGeneration, aCopyWithoutAHeartbeatChangesTheGeneration
    case aRoomBeginsWithItsFirstNode, ranksFollowTheOrder, attachingTwiceChangesNothing, anOldIncarnationCannotAttach
    case theLastDetachEndsARoom, aLateDetachIsIgnored, aSweepRemovesTheGone

    func run(_ store: some TestedStore) async throws {
        switch self {
        case .incarnationsRise, .incarnationsSkipAfterSilence, .incarnationsSkipWhileNodesMayBeUnheard:
            try await enlisting(store)
        case .aRecordIsTold, .onlyChangesAreTold, .changesComeInParts, .aLowerIncarnationIsFenced,
            .aHigherIncarnationReplaces, .anUnknownNodeIsAskedForItsRecord:
            try await telling(store)
        case .silenceMakesAbsent, .absenceEndsWithABeat, .nobodyIsAbsentInGrace, .theForgottenAreGone:
            try await absence(store)
        case .aWipeChangesTheGeneration, .anOlderCopyChangesTheGeneration: try await generations(store)
        case .aCopyWithoutAHeartbeatChangesTheGeneration: try await heartbeatsLost(store)
        case .aRoomBeginsWithItsFirstNode, .ranksFollowTheOrder, .attachingTwiceChangesNothing,
            .anOldIncarnationCannotAttach:
            try await attaching(store)
        case .theLastDetachEndsARoom, .aLateDetachIsIgnored, .aSweepRemovesTheGone: try await leaving(store)
        }
    }
}

/// Values for the cases.
enum Given {
    static func node(_ name: String) throws -> NodeID { try #require(NodeID(rawValue: name)) }

    static func instance(_ name: String, _ number: UInt32) throws -> NodeInstance {
        NodeInstance(node: try node(name), incarnation: try #require(NodeIncarnation(rawValue: number)))
    }

    static func generation(_ number: Int) throws -> StoreGeneration {
        let digits = String(number)
        return try #require(StoreGeneration(rawValue: String(repeating: "0", count: 32 - digits.count) + digits))
    }

    static func room(_ name: String) throws -> ChannelName { try #require(ChannelName(name)) }
    static func session(_ name: String) throws -> RoomSession { try #require(RoomSession(rawValue: name)) }

    static func record(_ region: String, _ state: NodeState = .ready) -> NodeRecord {
        var record = NodeRecord(state: state)
        record.region = region
        return record
    }

    /// A heartbeat that goes on after `last`.
    static func beat(
        _ instance: NodeInstance,
        _ record: NodeRecord? = nil,
        after last: HeartbeatAnswer? = nil,
        candidate: Int = 1
    ) throws -> Heartbeat {
        Heartbeat(
            instance: instance,
            record: record,
            generation: last?.generation,
            cursor: last?.cursor ?? 0,
            answeredMS: last?.timeMS ?? 0,
            candidate: try generation(candidate)
        )
    }
}
