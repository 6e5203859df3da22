import Base
import ChannelTypes
import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Room

@Suite(.timeLimit(.minutes(10)))
struct MailboxTests {
    private func push(_ text: Int) -> ParticipantEvent { .push("\(text)") }

    /// What waits, in short.
    private func take(_ mailbox: ParticipantMailbox, _ count: Int = .max) -> [String] {
        var taken: [String] = []
        while taken.count < count, let event = mailbox.takeFirst() {
            switch event {
            case .subscriptionsChanged: taken.append("changed")
            case .connected: taken.append("connected")
            case .notification: taken.append("news")
            case .unusedLayers: taken.append("layers")
            case .push(let text): taken.append(text)
            case .data: taken.append("data")
            case .ended: taken.append("ended")
            }
        }
        return taken
    }

    @Test func `events keep their order, and queued changes are merged`() {
        let mailbox = ParticipantMailbox(capacity: 10)
        for event in [.subscriptionsChanged, push(1), .subscriptionsChanged, .connected, .subscriptionsChanged] {
            #expect(mailbox.post(event))
        }
        #expect(take(mailbox, 1) == ["changed"])
        #expect(mailbox.post(.subscriptionsChanged), "it was taken, so another is news")
        mailbox.close(.left)
        #expect(mailbox.post(push(9)), "what comes after the end is nothing")
        mailbox.close(.shutdown)
        #expect(take(mailbox) == ["1", "connected", "changed", "ended"])
    }

    @Test func `the queue is bounded, and the end replaces queued events of a full queue`() {
        let mailbox = ParticipantMailbox(capacity: 3)
        for number in 0..<3 { #expect(mailbox.post(push(number))) }
        #expect(!mailbox.post(push(3)))
        #expect(take(mailbox, 1) == ["0"])
        #expect(mailbox.post(push(4)))
        mailbox.close(.tooSlow)
        #expect(take(mailbox) == ["ended"])
    }

    @Test func `a long queue is delivered completely`() {
        let mailbox = ParticipantMailbox(capacity: 1_000)
        var expected: [String] = []
        var taken: [String] = []
        for number in 0..<5_000 {
            #expect(mailbox.post(push(number)))
            expected.append("\(number)")
            if number % 3 != 0 { taken += take(mailbox, number % 3) }
        }
        #expect(taken + take(mailbox) == expected)
    }

    @Test func `a reader gets later events and the end`() async {
        let mailbox = ParticipantMailbox(capacity: 10)
        let reader = Task {
            var texts: [String] = []
            for await event in ParticipantEvents(mailbox: mailbox) {
                if case .push(let text) = event { texts.append(text) }
            }
            return texts
        }
        for number in 0..<5 {
            _ = mailbox.post(push(number))
            await Task.yield()
        }
        mailbox.close(.left)
        #expect(await reader.value == ["0", "1", "2", "3", "4"])
    }

    @Test func `a notification is encoded once`() {
        let notification = Notification(
            .forwarding(isBlocked: true, kind: .audio, source: Self.id, destination: Self.id),
            timestamp: 1
        )
        var count = 0
        for _ in 0..<3 {
            let text = notification.encoded { notification in
                count += 1
                return "\(notification.timestamp)"
            }
            #expect(text == "1")
        }
        #expect(count == 1)
    }

    private static let id: ParticipantID = {
        var generator = SeededGenerator(seed: 1)
        return ParticipantID(using: &generator)
    }()
}

struct InboxTests {
    private let peer = PeerID(rawValue: 1)
    private let mid = MID("0")!

    private func taken(_ events: [PeerEvent]) -> [PeerEvent] {
        let inbox = Inbox(empty: ChannelInbox())
        for (number, event) in events.enumerated() {
            #expect(inbox.post { $0.add(event, from: peer) } == (number == 0))
        }
        return inbox.take().events.map(\.event)
    }

    @Test func `of repeated speech one start and one end are kept`() {
        let begins = PeerEvent.speech(mid: mid, isSpeaking: true)
        let ceases = PeerEvent.speech(mid: mid, isSpeaking: false)
        #expect(taken([begins]) == [begins])
        #expect(taken([ceases]) == [ceases])
        #expect(taken([begins, ceases]) == [begins, ceases])
        #expect(taken([ceases, begins]) == [begins])
        #expect(taken(Array(repeating: [begins, ceases], count: 1_000).flatMap { $0 }) == [begins, ceases])
        #expect(taken([begins, .closed(.closedByPeer), ceases]) == [.closed(.closedByPeer)])
    }

    @Test func `the last network level is kept, after the connection`() {
        let levels = (0...3).map { PeerEvent.networkChanged(level: $0) }
        #expect(taken(levels + [.connected(over: .tcp)]) == [.connected(over: .tcp), levels[3]])
        #expect(taken([levels[3], .closed(.consentExpired), levels[0]]) == [.closed(.consentExpired)])
    }

    @Test func `of many changes of the transport the last one is kept, after the connection`() {
        let connected = PeerEvent.connected(over: .udp)
        let changes = (0..<1_001).map { PeerEvent.transportChanged($0 % 2 == 0 ? .tcp : .udp) }
        #expect(taken([connected] + changes) == [connected, .transportChanged(.tcp)])
    }

    @Test func `why a peer's data was ended is kept, even if the peer closes at once`() {
        let ended = PeerEvent.dataEnded(.flood)
        #expect(taken([ended, .networkChanged(level: 1), .closed(.closedByPeer)]) == [ended, .closed(.closedByPeer)])
    }

    @Test func `the last unused layers of each track are kept`() {
        let rids = ["a", "b"].map { RID($0)! }
        let unused = { (mid: MID, rids: [RID]) in PeerEvent.unusedLayers(mid: mid, rids: rids) }
        let other = MID("1")!
        #expect(
            taken([unused(mid, rids), unused(other, [rids[1]]), unused(mid, [])])
                == [unused(other, [rids[1]]), unused(mid, [])]
        )
    }

    @Test func `layer switches are merged from the first state to the last`() {
        let rids = ["a", "b", "c"].map { RID($0)! }
        let switched = { (current: RID?, previous: RID?) in
            PeerEvent.layerSwitched(slot: mid, current: current, previous: previous, isRequested: current == rids[2])
        }
        #expect(
            taken([switched(rids[0], nil), switched(rids[1], rids[0]), switched(rids[2], rids[1])])
                == [switched(rids[2], nil)]
        )
    }
}
