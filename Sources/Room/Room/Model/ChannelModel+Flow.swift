import Base
import ChannelTypes
import MediaTypes

// What comes from publishers at present: a kind that is unpublished, whose sending is paused or whose packets are lost comes no more,
// and one that is muted still comes.

extension ChannelModel {
    /// Packets of a publisher's track come, or have stopped.
    ///
    /// - Parameter before: the participant before that.
    mutating func announceFlow(since before: Participant, into effects: inout [Effect]) {
        let id = before.id
        announceTracks(of: id, changedFrom: before, into: &effects)
        reportMedia(of: id, into: &effects)
        guard let participant = participants[id], participant.isConnected,
            !participant.flowChanges(since: before).isEmpty, let report = report(on: participant)
        else { return }
        effects.append(.report(.flowChanged(report)))
    }

    /// Reports once that media of a publisher comes, and once that a picture came.
    mutating func reportMedia(of id: ParticipantID, into effects: inout [Effect]) {
        guard let participant = participants[id], participant.isLive, !participant.isRemote else { return }
        if !participant.hasPublished, !participant.flowing.isEmpty {
            participants[id]?.hasPublished = true
            if let report = participants[id].flatMap(report) { effects.append(.report(.publishingBegan(report))) }
        }
        // The media loop may tell of the picture before it tells of the track.
        guard !participant.hasShown, participants[id]?.hasPublished == true,
            participant.setup.media.firstFrameReceived != nil
        else { return }
        participants[id]?.hasShown = true
        if let report = participants[id].flatMap(report) { effects.append(.report(.firstFrameReceived(report))) }
        guard participant.isAnnounced else { return }
        let observers = observers(of: participant)
        guard !observers.isEmpty else { return }
        let elapsed = participant.elapsedMilliseconds(at: now)
        effects.append(.notify(.firstFrame(participant.member, elapsedMilliseconds: elapsed), to: observers))
    }
}

extension Participant {
    /// From its request to join until then, in milliseconds.
    func elapsedMilliseconds(at time: RoomTime?) -> Int {
        guard let time else { return 0 }
        let sinceCreation = max((time.instant - createdAt.instant).nanoseconds, 0)
        return Int((sinceCreation &+ setup.waitedNanoseconds) / 1_000_000)
    }
}
