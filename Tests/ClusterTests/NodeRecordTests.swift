import ChannelTypes
import MediaTypes
import Testing

@testable import Cluster

@Suite struct NodeRecordTests {
    static func full() -> NodeRecord {
        var record = NodeRecord(state: .draining)
        record.region = "eu"
        record.zone = "eu-1"
        record.publicURL = "https://a.example.net"
        record.linkAddress = "10.0.0.1:7100"
        record.build = "0.3.0"
        record.setLoad(0.42)
        record.members = 1_234
        record.rooms = 56
        return record
    }

    @Test func `a record is what it was encoded from`() throws {
        for record in [Self.full(), NodeRecord(state: .starting)] {
            let text = try #require(record.encoded())
            #expect(text.utf8.count <= 250 && NodeRecord(encoded: text) == record)
        }
        #expect(Self.full().load == 45)
    }

    @Test func `a record that is too long is not sent`() {
        var record = Self.full()
        record.publicURL = "https://" + String(repeating: "a", count: 300)
        #expect(record.encoded() == nil)
    }

    @Test(arguments: [
        (0.0, 0), (0.001, 5), (0.05, 5), (0.42, 45), (0.99, 100), (1, 100), (7, 100), (-1, 0), (.nan, 100),
        (.infinity, 100),
    ])
    func `a load is told in steps`(fraction: Double, load: Int) {
        var record = NodeRecord(state: .ready)
        record.setLoad(fraction)
        #expect(record.load == load)
    }

    @Test func `members of later versions are ignored`() {
        #expect(NodeRecord(encoded: #"{"s":"ready","later":{"x":1}}"#) == NodeRecord(state: .ready))
    }

    @Test(arguments: [
        "", "x", "[]", "{}", #"{"s":"gone"}"#, #"{"s":"ready","l":101}"#,
        #"{"s":"ready","m":-1}"#, #"{"s":"ready","u":7}"#,
    ])
    func `what is no record is refused`(text: String) { #expect(NodeRecord(encoded: text) == nil) }

    @Test func `names are checked`() {
        #expect(NodeID(rawValue: "node-1.eu_x") != nil && NodeID(rawValue: "a:b") == nil && NodeID(rawValue: "") == nil)
        #expect(NodeID(rawValue: String(repeating: "a", count: 64)) == nil && NodeID(rawValue: "é") == nil)
        #expect(ClusterName(rawValue: "prod-1") != nil && ClusterName(rawValue: "{x}") == nil)
        #expect(NodeInstance("a:7")?.description == "a:7")
        for text in ["a", "a:", "a:x", "a:7:8", ":7", "a:16777216"] { #expect(NodeInstance(text) == nil) }
    }

    @Test func `the keys of a script are in one hash slot`() throws {
        let keys = StoreKeys(cluster: try #require(ClusterName(rawValue: "c")))
        let calls = try [
            RegisterNode(node: Given.node("a"), candidate: Given.generation(1)).call(keys),
            SignedBeat(
                beat: Given.beat(Given.instance("a", 7), Given.record("x")),
                cluster: keys.cluster,
                signer: RecordSigner(secrets: ["s"])
            )
            .call(keys),
        ]
        for call in calls { #expect(call.keys.allSatisfy { $0.hasPrefix("ng:{c}:") }) }
        let names = try (0..<1_000).map { try Given.room("room-\($0)") }
        let parts = Sweep(rooms: names, gone: [:]).parts(keys)
        #expect(Set(parts.flatMap(\.rooms)) == Set(names) && parts.count > 200)
        for part in parts { #expect(Set(part.rooms.map(keys.tag)).count == 1 && part.rooms.count <= 64) }
        #expect(keys.room(names[0]).wholeMatch(of: /ng:\{c:[0-9a-f]{2}\}:room:room-0/) != nil)
    }
}
