import MediaTypes
import Wire

/// What a media plane is still to do. It holds each slot once, with what that is to play last.
struct PlaneWork {
    enum Item {
        case connect(TrackID)
        case remove(PeerID)
    }
    struct Wish {
        var source: PlacedTrack?
        var layer: LayerChoice
    }
    private var items: [Item] = []
    private var wishes: [TrackID: Wish] = [:]

    var isEmpty: Bool { items.isEmpty && wishes.isEmpty }
    var hasItems: Bool { !items.isEmpty }

    mutating func add(_ item: Item) { items.append(item) }

    /// Returns whether the slot was not waiting; then an item has to be added for it.
    mutating func wish(_ wish: Wish, for slot: TrackID) -> Bool { wishes.updateValue(wish, forKey: slot) == nil }

    func hasWish(for slot: TrackID) -> Bool { wishes[slot] != nil }
    mutating func takeWish(for slot: TrackID) -> Wish? { wishes.removeValue(forKey: slot) }

    mutating func takeItems() -> [Item] {
        defer { items = [] }
        return items
    }
}
