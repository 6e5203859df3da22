import Base
import ChannelTypes
import MediaTypes
import Testing

@testable import Cluster

/// What whoever writes to the store without the cluster's secret can make the nodes believe.
@Suite struct RecordSignatureTests {
    private static let (old, new) = (String(repeating: "o", count: 32), String(repeating: "n", count: 32))
    private static let cluster = ClusterName(rawValue: "c")!

    private static func sign(_ text: String, _ secrets: [String] = [old]) throws -> String {
        RecordSigner(secrets: secrets).sign(text, of: try Given.instance("a", 7), in: cluster)
    }

    private static func verify(
        _ text: String,
        _ secrets: [String] = [old],
        of name: String = "a",
        _ number: UInt32 = 7,
        in cluster: ClusterName = cluster
    ) throws -> RecordSignature {
        RecordSigner(secrets: secrets).verify(text, of: try Given.instance(name, number), in: cluster)
    }

    @Test func `a record is signed, and builds that do not know of it read it as before`() throws {
        let text = try #require(NodeRecordTests.full().encoded())
        let signed = try Self.sign(text)
        #expect(try Self.verify(signed) == .valid && Self.verify(text) == .missing)
        #expect(signed.utf8.count == text.utf8.count + RecordSigner.overheadBytes)
        #expect(RecordSigner.overheadBytes == NodeRecord.signatureBytes)
        #expect(NodeRecord(encoded: signed) == NodeRecordTests.full())
    }

    @Test func `the longest record has room for its signature`() throws {
        var record = NodeRecord(state: .ready)
        record.publicURL = String(repeating: "u", count: 200)
        record.zone = "z"
        let count = try #require(record.encoded()).utf8.count
        let rest = NodeRecord.bytesMax - NodeRecord.signatureBytes - count
        record.zone += String(repeating: "z", count: rest)
        let signed = try Self.sign(try #require(record.encoded()))
        #expect(signed.utf8.count == NodeRecord.bytesMax && NodeRecord(encoded: signed) == record)
        record.zone += "z"
        #expect(record.encoded() == nil)
    }

    @Test func `a record that was changed in any byte is not valid`() throws {
        let signed = Array(try Self.sign(try #require(NodeRecordTests.full().encoded())).utf8)
        for index in signed.indices {
            var changed = signed
            changed[index] ^= 1
            #expect(try Self.verify(String(decoding: changed, as: UTF8.self)) != .valid, "byte \(index)")
        }
        #expect(try Self.verify(String(decoding: signed.dropLast(), as: UTF8.self)) == .missing)
    }

    @Test func `a signature is of one node, run, cluster and secret`() throws {
        let signed = try Self.sign(try #require(NodeRecordTests.full().encoded()))
        #expect(try Self.verify(signed, of: "b") == .invalid)
        #expect(try Self.verify(signed, of: "a", 8) == .invalid)
        #expect(try Self.verify(signed, in: try #require(ClusterName(rawValue: "d"))) == .invalid)
        #expect(try Self.verify(signed, [Self.new]) == .invalid)
    }

    @Test func `nodes that replace their secret accept each other's records at each step`() throws {
        let text = try #require(NodeRecordTests.full().encoded())
        let steps = [[Self.old], [Self.old, Self.new], [Self.new, Self.old], [Self.new]]
        for (step, next) in zip(steps, steps.dropFirst()) {
            #expect(try Self.verify(try Self.sign(text, step), next) == .valid)
            #expect(try Self.verify(try Self.sign(text, next), step) == .valid)
        }
    }

    @Test(arguments: [
        "", "}", "\"}", "{}", #"{"h":""}"#, #","h":"0123456789abcdef0123456789abcdef"}"#,
        #"{"s":"ready","h":"0123"}"#, #"{"s":"ready","h":"0123456789abcdef0123456789abcdef","z":""}"#,
    ]) func `a record without a signature at its end has none`(text: String) throws {
        #expect(try Self.verify(text) == .missing)
    }

    @Test func `secrets are never printed`() {
        let signer = RecordSigner(secrets: [Self.old])
        var dumped = ""
        dump(signer, to: &dumped)
        for text in ["\(signer)", String(reflecting: signer), dumped] { #expect(!text.contains(Self.old)) }
    }

    // MARK: What a node makes of it

    private static let start = Instant(nanoseconds: 0)

    private static func change(
        _ name: String,
        _ number: UInt32,
        _ signature: RecordSignature,
        _ region: String = "eu"
    ) throws -> HeartbeatAnswer.Change {
        .init(instance: try Given.instance(name, number), record: Given.record(region), signature: signature)
    }

    /// The node `a` with the incarnation 7.
    private static func enlisted(acceptsUnsigned: Bool = false) throws -> Membership {
        var membership = try Membership(
            node: Given.node("a"),
            record: Given.record("eu"),
            saved: nil,
            acceptsUnsigned: acceptsUnsigned,
            seed: 1,
            at: start
        )
        _ = membership.nextRequest(at: start)
        let assigned = try #require(NodeIncarnation(rawValue: 7))
        #expect(membership.receivedEnlistment(.success(assigned), at: start) == [.enlisted])
        return membership
    }

    /// Sends the next heartbeat and hands back these changes.
    @discardableResult
    private static func beat(
        _ membership: inout Membership,
        _ changes: [HeartbeatAnswer.Change],
        absent: Set<NodeID> = [],
        at second: Int
    ) throws -> (beat: Heartbeat, events: [Membership.Event]) {
        let now = start + .seconds(second)
        guard case .beat(let beat) = membership.nextRequest(at: now) else { throw StoreError.malformed }
        let generation = try Given.generation(1)
        var answer = HeartbeatAnswer(generation: generation, revision: 9, cursor: 9, timeMS: 100_000, graceMS: 0)
        answer.isKnown = true
        answer.changes = changes
        answer.absent = absent
        return (beat, membership.receivedBeat(.success(answer), at: now))
    }

    @Test func `a node whose record is not signed is listed, and takes no part until it is`() throws {
        var membership = try Self.enlisted()
        let (b, c, d) = (try Given.node("b"), try Given.node("c"), try Given.node("d"))
        let changes = try [
            Self.change("b", 5, .invalid), Self.change("c", 6, .missing), Self.change("d", 8, .valid),
        ]
        #expect(try Self.beat(&membership, changes, at: 0).events == [.viewChanged])
        #expect(Set(membership.view.members.keys) == [d] && Set(membership.view.ignored.keys) == [b, c])
        let room = try Given.room("r")
        #expect(Set(membership.placement.nodes(for: room).map(\.node.rawValue)) == ["a", "d"])
        #expect(Set(membership.placementWithClosed.nodes(for: room).map(\.node.rawValue)) == ["a", "d"])
        #expect(membership.savedView.members.map(\.instance.node) == [d])
        #expect(try Self.beat(&membership, [Self.change("b", 5, .valid)], at: 1).events == [.viewChanged])
        #expect(Set(membership.view.members.keys) == [b, d] && Set(membership.view.ignored.keys) == [c])
        #expect(try Self.beat(&membership, [], absent: [c], at: 2).events == [.viewChanged])
        #expect(membership.view.ignored.isEmpty, "one that is not there is not listed")
    }

    @Test func `a record that is not signed changes nothing of a node that is known`() throws {
        var membership = try Self.enlisted()
        let b = try Given.node("b")
        try Self.beat(&membership, [Self.change("b", 5, .valid)], at: 0)
        let known = try #require(membership.view[b])
        try Self.beat(&membership, [Self.change("b", 5, .missing, "us")], at: 1)
        #expect(membership.view[b] == known && known.record.region == "eu")
        #expect(membership.view.ignored[b]?.record.region == "us")
        // The store does not take heartbeats of the earlier run any more.
        try Self.beat(&membership, [Self.change("b", 9, .invalid, "us")], at: 2)
        #expect(membership.view[b]?.instance == known.instance && membership.view[b]?.record == known.record)
        let room = try Given.room("r")
        #expect(membership.view[b]?.isAbsent == true && membership.placement.nodes(for: room).count == 1)
        try Self.beat(&membership, [Self.change("b", 10, .valid)], at: 3)
        #expect(membership.view[b]?.isAbsent == false && membership.view.ignored.isEmpty)
    }

    @Test func `a node that starts again with another secret stays listed, and its earlier run is forgotten`() throws {
        var membership = try Self.enlisted()
        let b = try Given.node("b")
        // The store is asked for all nodes three seconds after the start, too.
        for second in [0, 4] { try Self.beat(&membership, [Self.change("b", 5, .valid)], at: second) }
        #expect(membership.view.otherSecrets.isEmpty)
        try Self.beat(&membership, [Self.change("b", 9, .invalid)], at: 5)
        #expect(membership.view.otherSecrets == [b] && membership.view[b]?.isAbsent == true)
        // The store tells of the earlier run no more, and of no change of the later one.
        try Self.beat(&membership, [], at: 6)
        #expect(membership.view.otherSecrets == [b] && membership.view[b]?.isAbsent == true)
        let next = try Self.beat(&membership, [Self.change("b", 9, .invalid)], at: 7)
        #expect(next.beat.cursor == 0, "all nodes are looked at again")
        #expect(membership.view.otherSecrets == [b] && membership.view.members.isEmpty)
    }

    @Test func `a record under the node's own name that is not its own is listed`() throws {
        var membership = try Self.enlisted()
        let own = try Given.node("a")
        try Self.beat(&membership, [Self.change("a", 7, .valid)], at: 0)
        #expect(membership.view.ignored.isEmpty)
        try Self.beat(&membership, [Self.change("a", 7, .invalid, "us")], at: 1)
        #expect(membership.view.ignored[own]?.record.region == "us" && membership.view[own] == nil)
        #expect(membership.record.region == "eu" && membership.takesNewRooms)
    }

    @Test func `nodes that are ignored fill no memory, and take nobody's place`() throws {
        var membership = try Self.enlisted()
        let changes = try (0..<3_000).map { try Self.change("n\($0)", 5, .invalid) }
        try Self.beat(&membership, changes + [Self.change("b", 6, .valid)], at: 0)
        #expect(membership.view.ignored.count == ClusterView.ignoredMax)
        #expect(try membership.view[Given.node("b")] != nil)
    }

    @Test func `unsigned records are accepted for the time of an upgrade, and wrong signatures never`() throws {
        var membership = try Self.enlisted(acceptsUnsigned: true)
        let changes = try [
            Self.change("b", 5, .missing), Self.change("c", 6, .invalid), Self.change("d", 8, .valid),
        ]
        let (b, c, d) = (try Given.node("b"), try Given.node("c"), try Given.node("d"))
        try Self.beat(&membership, changes, at: 0)
        #expect(membership.view.members.mapValues(\.signature) == [b: .missing, d: .valid])
        #expect(Set(membership.view.ignored.keys) == [c])
        for (second, accepts) in [(1, false), (2, true)] {
            membership.setAcceptsUnsigned(accepts, at: Self.start + .seconds(second))
            let next = try Self.beat(&membership, changes, at: second)
            #expect(next.beat.cursor == 0 && next.events == [.viewChanged], "all nodes are looked at again")
            #expect(Set(membership.view.members.keys) == (accepts ? [b, d] : [d]))
            #expect(Set(membership.view.ignored.keys) == (accepts ? [c] : [b, c]))
        }
        membership.setAcceptsUnsigned(true, at: Self.start + .seconds(3))
        #expect(try Self.beat(&membership, [], at: 3).beat.cursor == 9, "nothing has changed")
    }
}
