package import Admission
import Base
package import ChannelTypes
import Foundation
package import MediaTypes
package import Room
package import Wire

/// A node without actors: the ``NodeModel`` and the ``ChannelModel``s of its channels, with the effects of channels on the
/// node.
package struct SynchronousNode {
    package typealias Effect = ChannelModel.Effect

    package var node: NodeModel
    package var channels: [ChannelName: ChannelModel] = [:]
    package var now = RoomTime(instant: Instant(nanoseconds: 0), unixNanoseconds: 0)
    /// Whether each channel is encoded, decoded and continued with after every event.
    package var codesChannels = false
    /// The effects of all events so far.
    package private(set) var trace: [[Effect]] = []
    /// The effects of the newcomers that took places of others, of the last newcomer.
    package private(set) var evictions: [Effect] = []
    /// The channels that are gone, as they were at their end.
    package private(set) var retired: [ChannelModel] = []
    private var secretCount = 0
    private static let nowhere = ChannelName("nowhere")!

    package init(
        limits: RoomLimits = RoomLimits(),
        node incarnation: NodeIncarnation = .standalone,
        locations: [MediaLocation]
    ) {
        node = NodeModel(limits: limits, node: incarnation, locations: locations)
    }

    /// Hands an event to a channel, and the effects that concern the node to the node.
    package mutating func change<Refusal>(
        _ name: ChannelName,
        _ event: (inout ChannelModel) throws(Refusal) -> [Effect]
    ) throws(Refusal) -> [Effect] {
        var channel = channels.removeValue(forKey: name) ?? ChannelModel(name: name, limits: node.limits)
        channel.now = now
        defer {
            node.summaryChanged(of: name, to: channel.summary)
            if channel.isUnused {
                precondition(channel.isEmpty, "an unused channel holds nothing")
                retired.append(channel)
            } else {
                channels[name] = codesChannels ? Self.coded(channel) : channel
            }
        }
        let effects = try event(&channel)
        trace.append(effects)
        for effect in effects {
            switch effect {
            case .connected(let id): node.connected(id)
            case .ended(let id, let reason): node.left(id, reason: reason, at: now)
            default: break
            }
        }
        return effects
    }

    /// ``change(_:_:)`` for the channel of a participant; of one that is gone an empty channel.
    package mutating func change<Refusal>(
        of id: ParticipantID,
        _ event: (inout ChannelModel) throws(Refusal) -> [Effect]
    ) throws(Refusal) -> [Effect] {
        try change(node.channel(of: id) ?? Self.nowhere, event)
    }

    package static func coded(_ channel: ChannelModel) -> ChannelModel {
        do {
            return try JSONDecoder().decode(ChannelModel.self, from: JSONEncoder().encode(channel))
        } catch {
            preconditionFailure("\(error)")
        }
    }
}

// MARK: - Events

extension SynchronousNode {
    package mutating func joinRequested(
        _ request: JoinRequest,
        id: ParticipantID,
        session: ChannelSessionID
    ) throws(RoomError) -> ParticipantLocation {
        let name = request.channel
        if var channel = channels[name] {
            channel.now = now
            if let id = channel.resumable(by: request) {
                let place = try node.resumed(request, as: id, at: now)
                let secret = nextSecret()
                _ = change(name) { $0.resumed(request, at: place, secret: secret) }
                return place
            }
        }
        let secret = request.keepsPlace ? nextSecret() : nil
        let check = (channels[name] ?? ChannelModel(name: name, limits: node.limits)).checkAdmission(of: request)
        let outcome = node.admit(request, id: id, check: check, at: now)
        evictions = []
        for name in Set(outcome.evicted.map(\.channel)).sorted(by: { $0.value < $1.value }) {
            let ids = outcome.evicted.filter { $0.channel == name }.map(\.participant)
            evictions += change(name) { $0.leftTogether(ids, reason: .evicted) }
        }
        let place = try outcome.result.get()
        do throws(RoomError) {
            _ = try change(name) { model throws(RoomError) in
                try model.joined(request, as: place, session: session, resumeSecret: secret)
            }
        } catch {
            node.left(id, reason: .setupFailed, at: now)
            throw error
        }
        return place
    }

    private mutating func nextSecret() -> String {
        secretCount += 1
        return "secret\(secretCount)"
    }

    package mutating func accessRefreshed(of id: ParticipantID, until expiry: AccessExpiry?) throws(RoomError) {
        _ = try change(of: id) { model throws(RoomError) in try model.accessRefreshed(of: id, until: expiry) }
    }

    package mutating func setupCompleted(
        _ id: ParticipantID,
        publications: [Publication],
        slots: [Slot],
        assigned: [SlotAssignment] = [],
        decodedVideo: Set<CodecName>? = nil,
        hasEventReader: Bool = true
    ) throws(RoomError) -> [Effect] {
        try change(of: id) { model throws(RoomError) in
            try model.setupCompleted(
                id,
                publications: publications,
                slots: slots,
                assigned: assigned,
                decodedVideo: decodedVideo,
                hasEventReader: hasEventReader
            )
        }
    }

    package mutating func left(_ id: ParticipantID, reason: EndReason) -> [Effect] {
        change(of: id) { $0.left(id, reason: reason) }
    }

    /// The channel of a peer; `nil` for an unknown one.
    package func channel(of peer: PeerID) -> ChannelName? { channels.first { $0.value.hasPeer(peer) }?.key }

    package mutating func received(_ event: PeerEvent, from peer: PeerID) -> [Effect] {
        guard let name = channel(of: peer) else { return [] }
        return change(name) { $0.received(event, from: peer) }
    }

    /// Lets time pass for the channels that have a deadline, as a node does.
    package mutating func tick(at now: RoomTime) -> [Effect] {
        self.now = now
        var effects: [Effect] = []
        for name in node.channelsDue(at: now.instant.nanoseconds / 1_000_000_000).sorted(by: { $0.value < $1.value }) {
            effects += change(name) { $0.tick(at: now) }
        }
        return effects
    }

    package mutating func slotsChanged(
        of id: ParticipantID,
        add: [SlotAssignment],
        remove: [MID]
    ) throws(RoomError) -> [Effect] {
        try change(of: id) { model throws(RoomError) in try model.slotsChanged(of: id, add: add, remove: remove) }
    }

    package mutating func end(
        in name: ChannelName,
        role: Role? = nil,
        clientID: String? = nil,
        reason: EndReason
    ) -> (ended: [ParticipantID], effects: [Effect]) {
        var ended: [ParticipantID] = []
        let effects = change(name) { model in
            ended = model.members(role: role, clientID: clientID)
            return model.leftTogether(ended, reason: reason)
        }
        return (ended, effects)
    }

    package mutating func shutdownRequested() -> [Effect] {
        node.joinPolicy.stop()
        return channels.keys.sorted { $0.value < $1.value }.flatMap { end(in: $0, reason: .shutdown).effects }
    }

    package mutating func layerRequested(
        _ layer: LayerChoice,
        by id: ParticipantID,
        of sender: ParticipantID?
    ) throws(RoomError) -> [Effect] {
        try change(of: id) { model throws(RoomError) in try model.layerRequested(layer, by: id, of: sender) }
    }

    package mutating func drainingStarted() { node.joinPolicy.stop() }
}

// MARK: - Queries

extension SynchronousNode {
    package var isEmpty: Bool { node.isEmpty && channels.isEmpty }
    package func channel(of id: ParticipantID) -> ChannelModel? { node.channel(of: id).flatMap { channels[$0] } }
    package func slots(of id: ParticipantID) -> [Slot]? { channel(of: id)?.slots(of: id) }
    package func visibleStreams(to id: ParticipantID) -> [VisibleStream] {
        channel(of: id)?.visibleStreams(to: id) ?? []
    }
}
