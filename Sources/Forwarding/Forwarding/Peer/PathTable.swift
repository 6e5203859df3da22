import Wire

/// Which peer sends over which validated address pair: what every datagram is looked up in.
///
/// Open addressing in plain memory, at most half full, and no reference counted. A pair enters it by an authenticated
/// connectivity check, and the hash is seeded, so nobody can pick pairs that collide.
@safe
struct PathTable: ~Copyable {
    private struct Entry {
        var path: NetworkPath
        var peer: Unretained<Peer>
    }
    private var entries: UnsafeMutablePointer<Entry?>
    private var mask: Int
    private(set) var count = 0
    private let seed: UInt64

    init(seed: UInt64) {
        self.seed = seed | 1
        mask = 15
        unsafe entries = .allocate(capacity: 16)
        unsafe entries.initialize(repeating: nil, count: 16)
    }

    deinit { unsafe entries.deallocate() }

    var isEmpty: Bool { count == 0 }

    /// The peer of a pair. It lives at least as long as it is in the table.
    @inline(__always)
    subscript(path: NetworkPath) -> Unretained<Peer>? {
        var place = home(of: path)
        while let entry = unsafe entries[place] {
            if entry.path == path { return entry.peer }
            place = (place + 1) & mask
        }
        return nil
    }

    /// Whether a pair is a certain peer's.
    func isOf(_ peer: Peer, _ path: NetworkPath) -> Bool {
        self[path]?.refers(to: peer) ?? false
    }

    mutating func set(_ path: NetworkPath, to peer: Peer) {
        if 2 * (count + 1) > mask + 1 { resize(to: 2 * (mask + 1)) }
        var place = home(of: path)
        while let entry = unsafe entries[place], entry.path != path { place = (place + 1) & mask }
        if unsafe entries[place] == nil { count += 1 }
        unsafe entries[place] = Entry(path: path, peer: Unretained(peer))
    }

    mutating func remove(_ path: NetworkPath) {
        var hole = home(of: path)
        while let entry = unsafe entries[hole], entry.path != path { hole = (hole + 1) & mask }
        guard unsafe entries[hole] != nil else { return }
        unsafe entries[hole] = nil
        count -= 1
        // Those behind, as far as they follow one on the other, move up into the hole if it is on their way.
        var place = (hole + 1) & mask
        while let entry = unsafe entries[place] {
            let distance = (place - home(of: entry.path)) & mask
            if distance >= (place - hole) & mask {
                unsafe entries[hole] = entry
                unsafe entries[place] = nil
                hole = place
            }
            place = (place + 1) & mask
        }
        if mask > 15, 8 * count < mask + 1 { resize(to: (mask + 1) / 2) }
    }

    private mutating func resize(to capacity: Int) {
        let old = unsafe entries
        let oldCapacity = mask + 1
        unsafe entries = .allocate(capacity: capacity)
        unsafe entries.initialize(repeating: nil, count: capacity)
        mask = capacity - 1
        for index in 0..<oldCapacity {
            guard let entry = unsafe old[index] else { continue }
            var place = home(of: entry.path)
            while unsafe entries[place] != nil { place = (place + 1) & mask }
            unsafe entries[place] = entry
        }
        unsafe old.deallocate()
    }

    @inline(__always)
    private func home(of path: NetworkPath) -> Int {
        let remote = path.remote
        var hash = (remote.ip.low ^ seed) &* 0x9E37_79B9_7F4A_7C15
        hash ^= remote.ip.high &+ UInt64(remote.port) << 16 &+ UInt64(path.local.rawValue) << 32
        hash = (hash ^ hash >> 32) &* (seed &* 0xD6E8_FEB8_6659_FD93 | 1)
        return Int(truncatingIfNeeded: hash >> 32) & mask
    }
}
