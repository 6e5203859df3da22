extension Dictionary {
    /// A table of this capacity or less keeps its room: what it takes is little, and what comes next needs it again.
    private static var smallCapacity: Int { 64 }

    /// Removes a value. A table that is nearly empty then gives back the room of the most values that it ever had, which
    /// a standard dictionary keeps.
    ///
    /// It is for tables whose size clients decide. A removal takes constant time on average: a table is made anew after
    /// seven of eight of its values have left.
    @discardableResult
    package mutating func removeValueAndRoom(forKey key: Key) -> Value? {
        guard let value = removeValue(forKey: key) else { return nil }
        if capacity > Self.smallCapacity, count < capacity / 8 {
            var smaller = Dictionary(minimumCapacity: count * 2)
            for (key, value) in self { smaller[key] = value }
            self = smaller
        }
        return value
    }
}
