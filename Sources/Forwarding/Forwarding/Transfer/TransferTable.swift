import Base
import MediaTypes
import Wire

/// One loop that plays a track through a mirror.
struct TrackExport {
    let relay: MirrorID
    let linkID: LinkID
    let link: Unretained<TransferLink>
    /// The layer choices that the mirror needs.
    var choices: LayerChoices
    /// Layers that still play there, by the mirror's last subscription and by what answered a choice since then.
    var layers: LayerSet = []
    /// The layers that the mirror's slots want.
    var wanted: LayerSet
    /// The mirror has subscribed, so it is there.
    var isSubscribed = false

    /// - Parameter isOnward: the track is a mirror itself. It needs nothing more of its origin until the first subscription,
    ///   which loops of one node do not lose on their way. Of a track that is received here all is sent until then.
    init(relay: MirrorID, linkID: LinkID, link: TransferLink, isOnward: Bool) {
        self.relay = relay
        self.linkID = linkID
        self.link = Unretained(link)
        choices = isOnward ? [] : .all
        wanted = isOnward ? [] : .all
    }
}

/// What crosses between a core and other loops: its links, the tracks of its peers that go out over them, and the mirrors
/// of other loops' tracks.
final class TransferTable {
    /// A track of another loop that is played here.
    struct Mirror {
        let track: ReceivedTrack
        let relay: MirrorID
        /// Where a track of another node is published; `nil` for one of this node.
        let origin: MediaLocation?
    }

    /// A mirror's place, which its ``MirrorID`` names.
    struct Place {
        var generation: UInt16 = 0
        /// The name was given out and its mirror is still to be made.
        var isExpected: Bool
        var mirror: Unretained<ReceivedTrack>?
        /// The one that the mirror's packets come over.
        var link = LinkID(rawValue: 0)
        var createdAt = Instant(nanoseconds: 0)
    }

    private struct ExportKey: Hashable {
        let link: LinkID
        let relay: MirrorID
    }

    /// Mirrors of one core: as many as a ``MirrorID`` tells apart.
    static let mirrorsMax = 0x1_0000

    /// The layers of a track, written for its mirrors; one for all tracks, so that it is allocated once.
    var layerBytes: [UInt8] = []

    private(set) var links: [LinkID: TransferLink] = [:]
    /// The links to loops of this node.
    private var loopLinks: [TransferLink] = []
    private var exports: [ExportKey: ReceivedTrack] = [:]
    private(set) var mirrors: [TrackID: Mirror] = [:]
    /// Of tracks of other nodes.
    var endedMirrors = EndedMirrors()
    private var places: ContiguousArray<Place> {
        @inline(__always) _read { yield unsafe mirrorPlaces }
        @inline(__always) _modify { yield unsafe &mirrorPlaces }
    }
    /// Every packet of a mirror reads it, in one step, so accesses are not checked.
    @exclusivity(unchecked) private var mirrorPlaces: ContiguousArray<Place> = []
    private var freePlaces: [Int] = []
    /// Ends of mirrors that are still to be told.
    private var unsubscriptions: [(relay: MirrorID, link: LinkID)] = []

    /// Whether no track crosses.
    var isEmpty: Bool { mirrors.isEmpty && exports.isEmpty }
    var hasExports: Bool { !exports.isEmpty }

    // MARK: - Links

    func setLink(_ link: TransferLink, as id: LinkID) {
        links[id] = link
        loopLinks.append(link)
    }

    /// A link to a loop of another node flushes by itself at the end of a turn.
    func setMediaLink(_ link: TransferLink, as id: LinkID) { links[id] = link }

    /// Nothing may cross over the link any more.
    func removeMediaLink(_ id: LinkID) { links[id] = nil }

    /// Lets the other loops of the node begin.
    func flushLinks() {
        for link in loopLinks { link.flush() }
    }

    // MARK: - Tracks that go out

    /// Lets a track go to the mirror `relay` over a link; an earlier export over the same link, to another mirror, ends.
    func export(_ track: ReceivedTrack, as relay: MirrorID, over id: LinkID) throws(ForwarderError) {
        guard let link = links[id] else { throw .unknownLink(id) }
        guard exportedTrack(to: relay, over: id) !== track else { return }
        endExport(to: relay, over: id)
        for export in track.exports where export.linkID == id { endExport(to: export.relay, over: id) }
        track.exports.append(TrackExport(relay: relay, linkID: id, link: link, isOnward: track.origin != nil))
        exports[ExportKey(link: id, relay: relay)] = track
        link.users += 1
    }

    /// The track that goes to a mirror.
    func exportedTrack(to relay: MirrorID, over link: LinkID) -> ReceivedTrack? {
        exports[ExportKey(link: link, relay: relay)]
    }

    func endExport(to relay: MirrorID, over link: LinkID) {
        guard let track = exports.removeValue(forKey: ExportKey(link: link, relay: relay)) else { return }
        track.exports.removeAll { $0.linkID == link && $0.relay == relay }
        links[link]?.users -= 1
    }

    func endExports(of track: ReceivedTrack) {
        for export in track.exports { endExport(to: export.relay, over: export.linkID) }
    }

    /// Ends all exports over a link.
    func endExports(over link: LinkID) {
        for key in exports.keys where key.link == link { endExport(to: key.relay, over: link) }
    }

    // MARK: - Mirrors

    func makeMirrorID() throws(ForwarderError) -> MirrorID {
        if let index = freePlaces.popLast() {
            places[index].generation &+= 1
            places[index].isExpected = true
            return MirrorID(place: index, generation: places[index].generation)
        }
        guard places.count < Self.mirrorsMax else { throw .tooManyMirrors(limit: Self.mirrorsMax) }
        places.append(Place(isExpected: true))
        return MirrorID(place: places.count - 1, generation: 0)
    }

    /// The mirrors whose packets come over a link.
    func mirrors(from link: LinkID) -> [ReceivedTrack] {
        mirrors.values.filter { places[$0.relay.place].link == link }.map(\.track)
    }

    /// Whether a mirror's packets come over a loop of this node.
    func isBehindLoop(_ mirror: Mirror) -> Bool { !(links[places[mirror.relay.place].link] is MediaLink) }

    /// The mirrors of tracks that are published on a node, whichever way their packets come.
    func mirrors(of node: NodeIncarnation) -> [ReceivedTrack] {
        mirrors.values.filter { $0.track.id.peer.node == node }.map(\.track)
    }

    func discard(_ relay: MirrorID) {
        places[relay.place].isExpected = false
        places[relay.place].mirror = nil
        freePlaces.append(relay.place)
    }

    /// - Parameter location: for a track of another node that comes over another loop of this node.
    func addMirror(
        _ track: ReceivedTrack,
        as relay: MirrorID,
        from link: LinkID,
        publishedAt location: MediaLocation?,
        at now: Instant
    ) {
        precondition(mirrors[track.id] == nil, "a track has one mirror on a loop")
        let origin = (links[link] as? MediaLink)?.location ?? location
        mirrors[track.id] = Mirror(track: track, relay: relay, origin: origin)
        places[relay.place].isExpected = false
        places[relay.place].mirror = Unretained(track)
        places[relay.place].link = link
        places[relay.place].createdAt = now
        links[link]?.users += 1
    }

    /// - Returns: the mirror's name and the link that its packets came over; `nil` when the track was no mirror of this table.
    func removeMirror(_ track: ReceivedTrack) -> (relay: MirrorID, link: LinkID)? {
        guard let mirror = mirrors[track.id], mirror.track === track else { return nil }
        mirrors[track.id] = nil
        endedMirrors.remove(track.id)
        let link = places[mirror.relay.place].link
        links[link]?.users -= 1
        discard(mirror.relay)
        return (mirror.relay, link)
    }

    /// The end of a mirror could not be told. Without packets of it nothing else would remind the other end.
    func unsubscribeLater(_ relay: MirrorID, over link: LinkID) {
        guard links[link] != nil, unsubscriptions.count < Self.mirrorsMax else { return }
        unsubscriptions.append((relay, link))
    }

    /// Tells the ends of mirrors again that could not be told. To be called about once a second.
    func repeatUnsubscriptions() {
        unsubscriptions.removeAll { relay, link in links[link]?.send(.unsubscribe(relay)) ?? true }
    }

    /// `nil` when the name is not in use any more, or by a later mirror.
    @inline(__always)
    func place(of relay: MirrorID) -> Place? {
        guard relay.place < places.count, places[relay.place].generation == relay.generation else { return nil }
        return places[relay.place]
    }
}
