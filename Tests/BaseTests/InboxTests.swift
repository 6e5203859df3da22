import Testing

@testable import Base

struct InboxTests {
    @Test func `the actor is called for the first of what it takes at once`() {
        let inbox = Inbox(empty: [Int]())
        for round in 0..<2 {
            #expect(inbox.post { $0.append(round) })
            #expect(!inbox.post { $0.append(7) })
            #expect(inbox.take() == [round, 7])
            #expect(inbox.take() == [])
        }
    }
}
