import Base
import MediaTypes
import SRTP
import Wire

/// The links of one loop to loops of other nodes. A datagram names its link by a number that this table gave it, so that
/// it is found without a search, and everything else is dropped before any decryption.
@safe
final class MediaLinkTable {
    /// Links of one loop.
    static let linksMax = 1_024
    /// What names them to the forwarder begins here; links within the node have smaller numbers.
    private static let idBase: UInt32 = 0x1_0000
    /// Deadlines of links that are closer than this are served together.
    private static let timerSpacing = Interval.milliseconds(5)

    let engine: SRTPEngine
    private let random: () -> UInt64
    private let wallAtZero: Int64
    /// This loop; meaningful once started.
    private(set) var location = MediaLocation(loop: LoopIndex(rawValue: 0))
    private var sockets: [TransportAddress] = []
    private var addresses: [TransportAddress] = []
    /// Where datagrams go; `nil` before the start.
    private var batch: DatagramBatch?
    /// What every datagram needs of the table.
    let shared: UnsafeMutablePointer<MediaLinkTraffic.Shared>

    private var links: [MediaLink?] = []
    private var numbers: [MediaLocation: Int] = [:]
    /// Numbers of links that ended, the one that ended first in front: it is used again last.
    private var freeNumbers: [Int] = []
    /// The traffic of each link, by its number. Every datagram reads it, in one step, so accesses are not checked.
    @exclusivity(unchecked) private var traffics: ContiguousArray<UnsafeMutablePointer<MediaLinkTraffic>?> = unsafe []
    private var dirty: ContiguousArray<Unretained<MediaLink>> = []
    private var serving: ContiguousArray<Unretained<MediaLink>> = []
    /// When some link is due, no later than the first.
    private(set) var nextDeadline: Instant?

    init(engine: SRTPEngine, wallAtZero: Int64, random: @escaping () -> UInt64) {
        self.engine = engine
        self.wallAtZero = wallAtZero
        self.random = random
        unsafe shared = .allocate(capacity: 1)
        unsafe shared.initialize(to: MediaLinkTraffic.Shared())
    }

    deinit { unsafe shared.deallocate() }

    /// Of the present turn.
    var now: Instant {
        get { unsafe shared.pointee.now }
        set { unsafe shared.pointee.now = newValue }
    }

    var counters: MediaLinkCounters {
        get { unsafe shared.pointee.counters }
        _modify { yield unsafe &shared.pointee.counters }
    }

    /// - Parameters:
    ///   - sockets: what each socket of the loop is bound to, by its index.
    ///   - addresses: what other nodes are told.
    func start(
        _ location: MediaLocation,
        sockets: [TransportAddress],
        addresses: [TransportAddress],
        into batch: DatagramBatch
    ) {
        precondition(numbers.isEmpty, "links are started before there are any")
        self.location = location
        self.sockets = sockets
        self.addresses = addresses
        self.batch = batch
        unsafe shared.pointee.batch = Unretained(batch)
    }

    var isStarted: Bool { batch != nil && !addresses.isEmpty }
    var all: [MediaLink] { links.compactMap { $0 } }

    /// The wall clock in nanoseconds.
    func wall(at now: Instant) -> Int64 { wallAtZero &+ now.nanoseconds }

    /// The ways from the loop's sockets to addresses: those of an address's family, and loopback to loopback.
    func paths(to addresses: [TransportAddress]) -> [NetworkPath] {
        var paths: [NetworkPath] = []
        for address in addresses {
            let index = sockets.firstIndex { socket in
                socket.ip.isV4 == address.ip.isV4
                    && (socket.ip.isUnspecified || socket.ip.isLoopback == address.ip.isLoopback)
            }
            guard let index, let number = UInt16(exactly: index) else { continue }
            paths.append(NetworkPath(socket: SocketIndex(rawValue: number), remote: address))
        }
        return paths
    }

    // MARK: - Links

    /// The link to a loop; `nil` without one.
    func link(to location: MediaLocation) -> MediaLink? { numbers[location].flatMap { links[$0] } }

    /// The link of a received datagram.
    func link(_ number: UInt16) -> MediaLink? { Int(number) < links.count ? links[Int(number)] : nil }

    /// The traffic of a received datagram's link.
    @unsafe
    @inline(__always)
    func traffic(_ number: UInt16) -> UnsafeMutablePointer<MediaLinkTraffic>? {
        unsafe Int(number) < traffics.count ? traffics[Int(number)] : nil
    }

    func makeLink(to location: MediaLocation) throws(ForwarderError) -> MediaLink {
        let number: Int
        if links.count < Self.linksMax {
            number = links.count
            links.append(nil)
            unsafe traffics.append(nil)
        } else if !freeNumbers.isEmpty {
            number = freeNumbers.removeFirst()
        } else {
            throw .tooManyMediaLinks(limit: Self.linksMax)
        }
        let link = MediaLink(
            id: LinkID(rawValue: Self.idBase + UInt32(number)),
            number: UInt16(number),
            to: location,
            secret: LinkSecret(random: random),
            self
        )
        links[number] = link
        unsafe traffics[number] = link.traffic
        numbers[location] = number
        return link
    }

    /// What the other end of a link needs to send here.
    func end(of link: MediaLink) -> MediaLinkEnd {
        MediaLinkEnd(location: location, addresses: addresses, link: link.number, secret: link.secret)
    }

    func remove(_ link: MediaLink) {
        guard let number = numbers.removeValue(forKey: link.location) else { return }
        dirty.removeAll { $0.refers(to: link) }
        links[number] = nil
        unsafe traffics[number] = nil
        freeNumbers.append(number)
    }

    // MARK: - Turns

    /// The link has work at the end of the turn.
    func markDirty(_ link: MediaLink) {
        guard unsafe !link.traffic.pointee.isDirty else { return }
        unsafe link.traffic.pointee.isDirty = true
        dirty.append(Unretained(link))
    }

    /// Sends what waits on the links.
    func endTurn(at now: Instant) {
        guard !dirty.isEmpty else { return }
        self.now = now
        swap(&dirty, &serving)
        var index = 0
        while index < serving.count {
            serving[index].with { link in
                link.endTurn(at: now)
                nextDeadline = earliest(nextDeadline, link.nextDeadline)
            }
            index += 1
        }
        serving.removeAll(keepingCapacity: true)
    }

    func handleTimeout(at now: Instant) {
        guard let due = nextDeadline, due <= now else { return }
        self.now = now
        var next: Instant?
        for link in links {
            guard let link else { continue }
            link.handleTimeout(at: now)
            next = earliest(next, link.nextDeadline)
        }
        nextDeadline = next.map { max($0, now + Self.timerSpacing) }
    }
}

/// Why a link did not take a datagram.
enum LinkRefusal: Error {
    case drop(DropReason)
}
