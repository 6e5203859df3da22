// Deadlines of participants: the end of `connection_lifetime`, the expiry of their tokens, setup timeouts, changes that wait
// for a budget, and updates of every minute.

import Base
package import ChannelTypes
import MediaTypes

extension ChannelModel {
    /// In a channel with more members than this, the updates of every minute go to their own member only.
    static let updatesSharedMembersMax = 100
    private static let updateSeconds: Int64 = 60

    /// Handles the deadlines that are due: ends participants whose lifetime or setup timeout is over or whose token has
    /// expired, or all when the channel has lived for as long as it may, and sends warnings and the updates of every
    /// minute. To be called about once a second.
    package mutating func tick(at now: RoomTime) -> [Effect] {
        self.now = now
        endDepartureWait()
        if let end = state.session?.endSecond, end <= now.second {
            return leftTogether(members(), reason: .channelExpired)
        }
        var effects: [Effect] = []
        for id in lifetimeDeadlines.due(through: now.second) {
            participants[id]?.deadlines.lifetimeEnd = nil
            effects += left(id, reason: .lifetimeExpired)
        }
        for id in expiryDeadlines.due(through: now.second) { expiryDue(id, into: &effects) }
        for id in setupDeadlines.due(through: now.second) {
            participants[id]?.deadlines.setup = nil
            guard let participant = participants[id] else { continue }
            if participant.isActive {
                effects.append(.checkTransport(id, participant.peer, location: participant.location))
            } else {
                effects += left(id, reason: .unanswered)
            }
        }
        for id in graceDeadlines.due(through: now.second) { graceEnded(id, into: &effects) }
        for id in changeDeadlines.due(through: now.second) { ownChangesDue(of: id, into: &effects) }
        updateRecentSpeakers(into: &effects)
        for id in updateDeadlines.due(through: now.second) { update(id, into: &effects) }
        return effects
    }

    /// The media plane answers ``Effect/checkTransport(_:_:location:)``. A participant without an ICE path ends.
    package mutating func transportChecked(_ id: ParticipantID, hasPath: Bool) -> [Effect] {
        guard !hasPath, participants[id]?.isConnected == false else { return [] }
        return left(id, reason: .unreachable)
    }

    private mutating func update(_ id: ParticipantID, into effects: inout [Effect]) {
        guard let participant = participants[id], let second = participant.deadlines.update else { return }
        // After a gap in time one update, not one for each minute of the gap.
        let next = (second + Self.updateSeconds > now.second ? second : now.second) + Self.updateSeconds
        participants[id]?.deadlines.update = updateDeadlines.insert(id, order: participant.order, at: next)
        let isPrivate = state.members.count > Self.updatesSharedMembersMax
        announceUpdated(participant, isPrivate: isPrivate, into: &effects)
    }

    /// Ends a participant whose token has expired, or warns it before.
    private mutating func expiryDue(_ id: ParticipantID, into effects: inout [Effect]) {
        guard var participant = participants[id], let expiry = participant.expiry else { return }
        participant.deadlines.expiry = nil
        let remaining = expiry.nanoseconds(from: now.unixNanoseconds)
        guard remaining > 0 else {
            participants[id] = participant
            effects += left(id, reason: .tokenExpired)
            return
        }
        // The real-time clock may have been set back since the deadline was scheduled.
        if !participant.deadlines.isExpiryAnnounced, remaining <= Self.nanoseconds(expiry.warningSeconds) {
            participant.deadlines.isExpiryAnnounced = true
            effects.append(.notify(.accessExpires(unixSeconds: expiry.unixSeconds), to: [id]))
        }
        scheduleExpiry(&participant)
        participants[id] = participant
    }

    /// A participant has presented a new token or URL. Nothing else about it changes.
    ///
    /// - Parameter expiry: when the new permission expires; `nil` without an end.
    /// - Throws: ``RoomError/participantUnknown``, and ``RoomError/expiryNotLater`` unless `expiry` is later than the
    ///   present one.
    package mutating func accessRefreshed(
        of id: ParticipantID,
        until expiry: AccessExpiry?
    ) throws(RoomError) -> [Effect] {
        guard var participant = participants[id] else { throw .participantUnknown }
        guard let present = participant.expiry, expiry.map({ $0.unixSeconds > present.unixSeconds }) ?? true else {
            throw .expiryNotLater
        }
        if participant.isRemote {
            return [.request(.extendAccess(of: id, until: expiry), of: participant.location.node)]
        }
        replaceExpiry(of: &participant, by: expiry)
        participants[id] = participant
        return []
    }

    /// Replaces a participant's expiry. It is warned again.
    mutating func replaceExpiry(of participant: inout Participant, by expiry: AccessExpiry?) {
        if let second = participant.deadlines.expiry { expiryDeadlines.cancel(order: participant.order, at: second) }
        participant.deadlines.expiry = nil
        participant.expiry = expiry
        participant.deadlines.isExpiryAnnounced = false
        if participant.isConnected { scheduleExpiry(&participant) }
    }

    /// Schedules the warning of a connected participant, or after it the end.
    private mutating func scheduleExpiry(_ participant: inout Participant) {
        guard let expiry = participant.expiry else { return }
        let warning = participant.deadlines.isExpiryAnnounced ? 0 : Self.nanoseconds(expiry.warningSeconds)
        let wait = max(expiry.nanoseconds(from: now.unixNanoseconds), 0)
        let (instant, overflows) = now.instant.nanoseconds.addingReportingOverflow(max(wait - warning, 0))
        guard !overflows else { return }
        // The first whole second that is not before the instant.
        let second = instant / 1_000_000_000 + (instant % 1_000_000_000 > 0 ? 1 : 0)
        participant.deadlines.expiry = expiryDeadlines.insert(participant.id, order: participant.order, at: second)
    }

    /// Clamped to 64 bits.
    private static func nanoseconds(_ seconds: Int64) -> Int64 {
        let (product, overflows) = max(seconds, 0).multipliedReportingOverflow(by: 1_000_000_000)
        return overflows ? .max : product
    }

    /// Schedules the updates, the end of the lifetime and the expiry of a participant that connected.
    mutating func scheduleDeadlines(_ participant: inout Participant) {
        let (id, order) = (participant.id, participant.order)
        participant.deadlines.update = updateDeadlines.insert(id, order: order, at: now.second + Self.updateSeconds)
        scheduleExpiry(&participant)
        guard let seconds = participant.terms.lifetimeSeconds else { return }
        let (end, overflows) = now.second.addingReportingOverflow(seconds)
        if !overflows { participant.deadlines.lifetimeEnd = lifetimeDeadlines.insert(id, order: order, at: end) }
    }

    /// Starts the setup timeout: of the participant's answer before its activation, of its transport after.
    mutating func scheduleSetupTimeout(_ participant: inout Participant) {
        cancelSetupTimeout(&participant)
        let seconds = max(limits.unansweredTimeout.components.seconds, 1)
        let (end, overflows) = now.second.addingReportingOverflow(seconds)
        guard !overflows else { return }
        participant.deadlines.setup = setupDeadlines.insert(participant.id, order: participant.order, at: end)
    }

    mutating func cancelSetupTimeout(_ participant: inout Participant) {
        guard let second = participant.deadlines.setup else { return }
        setupDeadlines.cancel(order: participant.order, at: second)
        participant.deadlines.setup = nil
    }

    mutating func cancelDeadlines(_ participant: Participant) {
        if let second = participant.deadlines.update { updateDeadlines.cancel(order: participant.order, at: second) }
        if let second = participant.deadlines.lifetimeEnd {
            lifetimeDeadlines.cancel(order: participant.order, at: second)
        }
        if let second = participant.deadlines.expiry { expiryDeadlines.cancel(order: participant.order, at: second) }
        if let second = participant.resumption?.interruption?.deadlineSecond {
            graceDeadlines.cancel(order: participant.order, at: second)
        }
        cancelChangeDeadline(participant)
    }
}
