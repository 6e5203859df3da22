import EventLoop
import Forwarding
import MediaTypes

/// The other loops of a loop's node, and the rings to and from them. A loop alone has none.
struct LoopNeighbours {
    /// The reading end of the way from one other loop.
    struct Source {
        let link: LinkID
        let ring: LoopRing<TimedTransferRecord>
    }

    /// The node's loops by their locations, the loop itself included, until it shuts down.
    private(set) var loops: [MediaLocation: MediaLoop] = [:]
    /// The forwarder's name of the link to each other loop.
    private(set) var linkIDs: [MediaLocation: LinkID] = [:]
    private(set) var links: [LoopLink] = []
    private var sources: [Source] = []
    /// The source whose records are taken next.
    private var nextIndex = 0
    private var recordsReceived: UInt64 = 0

    init() {}

    /// - Parameter cause: of what is sent.
    init(_ neighbours: [LoopNeighbour], of loops: [MediaLoop], cause: ReceiveTime) {
        self.loops = Dictionary(uniqueKeysWithValues: loops.map { ($0.location, $0) })
        linkIDs = Dictionary(uniqueKeysWithValues: neighbours.map { ($0.location, $0.link) })
        links = neighbours.map { LoopLink(to: $0, cause: cause) }
        sources = neighbours.map { Source(link: $0.link, ring: $0.incoming) }
    }

    var sourceCount: Int { sources.count }

    /// Whether a loop has sent something that was not taken.
    var hasWaiting: Bool { sources.contains { !$0.ring.isEmpty } }

    /// The source whose turn it is; each has it once before one has it again. There is at least one.
    mutating func nextSource() -> Source {
        defer { nextIndex = (nextIndex + 1) % sources.count }
        return sources[nextIndex]
    }

    mutating func took(_ records: Int) { recordsReceived &+= UInt64(records) }

    /// Lets the other loops take what this one sent.
    func publish() {
        for link in links { link.publish() }
    }

    /// The loops hold one another until they shut down.
    mutating func shutdown() { loops = [:] }

    /// What went to and came from other loops.
    var counters: TransferCounters {
        var counters = TransferCounters()
        for link in links { link.count(in: &counters) }
        counters.recordsReceived = recordsReceived
        return counters
    }
}
