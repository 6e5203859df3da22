internal import CHiredis

/// A command of the Redis protocol: its name and its arguments, which may hold any bytes.
package struct RESPCommand: Hashable, Sendable {
    package var arguments: [[UInt8]]

    package init(_ arguments: [[UInt8]]) { self.arguments = arguments }
    package init(_ words: String...) { arguments = words.map { Array($0.utf8) } }

    /// The command on the wire: an array of bulk strings.
    /// - Throws: ``RESPError/noMemory``.
    package func encoded() throws(RESPError) -> [UInt8] {
        let bytes = arguments.flatMap { $0 }
        let lengths = arguments.map(\.count)
        var command: UnsafeMutablePointer<CChar>?
        let count = unsafe bytes.withUnsafeBufferPointer { buffer -> Int32 in
            // An empty array has no address, and an argument of no bytes needs one.
            var empty: CChar = 0
            return unsafe withUnsafePointer(to: &empty) { empty in
                let start = unsafe buffer.baseAddress.map {
                    unsafe UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self)
                }
                var offset = 0
                var pointers: [UnsafePointer<CChar>?] = unsafe []
                for length in lengths {
                    unsafe pointers.append((start ?? empty) + offset)
                    offset += length
                }
                return unsafe redisFormatCommandArgv(&command, Int32(clamping: lengths.count), &pointers, lengths)
            }
        }
        guard count > 0, let command = unsafe command else { throw .noMemory }
        defer { unsafe redisFreeCommand(command) }
        return unsafe Array(UnsafeRawBufferPointer(start: command, count: Int(count)))
    }
}
