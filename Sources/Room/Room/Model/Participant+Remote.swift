import Base
import ChannelTypes
import MediaTypes

// Members of other nodes: see ``MemberRecord``.

extension Resumption {
    /// Of a member that is interrupted at its own node, which also ends the grace time.
    static var elsewhere: Self {
        var resumption = Self(secret: "")
        resumption.interruption = Interruption(loss: .transport, endSecond: .max, deadlineSecond: .max)
        return resumption
    }
}

extension RoomTime {
    /// The time of an event of another node, which is not in the future.
    func earlier(unixNanoseconds: Int64) -> Self {
        let (passed, overflows) = self.unixNanoseconds.subtractingReportingOverflow(unixNanoseconds)
        let nanoseconds = overflows ? 0 : min(max(passed, 0), max(instant.nanoseconds, 0))
        return Self(
            instant: Instant(nanoseconds: instant.nanoseconds - nanoseconds),
            unixNanoseconds: unixNanoseconds
        )
    }
}

extension Participant {
    /// Takes over what changes nothing else.
    mutating func update(_ record: MemberRecord) {
        let role = member.role
        member = record.member
        member.role = role
        peer = record.peer
        location = record.location
        agent = record.agent
        expiry = record.expiry
        quality = record.quality
        isSilent = record.isSilent ?? false
        negotiatedPublications = record.publications
        begun.formUnion(record.publications.flowingKinds)
        mutedByItself = record.mutedByItself
        mutedByOperator = record.mutedByOperator
        mutedByModerator = record.mutedByModerator ?? []
        isHandRaised = record.isHandRaised ?? false
        if liveNumber == 0 { liveNumber = record.liveNumber }
    }

    /// Whether viewers have to play something else than before.
    func isSource(otherThan before: Self) -> Bool {
        peer != before.peer || location != before.location || publications != before.publications
            || stopped != before.stopped || isActive != before.isActive
    }
}
