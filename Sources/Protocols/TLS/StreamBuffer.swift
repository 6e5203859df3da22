internal import OpenSSLBuffers

/// The input and output of one connection's BIO.
@safe
final class StreamBuffer: ConnectionBuffer {
    /// The most bytes of output that wait: a write of the owner, and what a handshake or key updates add.
    static let outputBytesMax = 65_536

    /// The bytes that OpenSSL reads, which belong to the caller of ``withInput(_:_:)``.
    private var input = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var output: [UInt8] = []

    /// Lets OpenSSL read `bytes` within `body`.
    func withInput(_ bytes: RawSpan, _ body: () -> Void) {
        unsafe bytes.withUnsafeBytes { bytes in
            unsafe input = bytes
            body()
            unsafe input = UnsafeRawBufferPointer(start: nil, count: 0)
        }
    }

    func takeOutput() -> [UInt8] {
        defer { output = [] }
        return output
    }

    override func read(into target: UnsafeMutableRawBufferPointer) -> Int {
        let length = unsafe min(target.count, input.count)
        guard length > 0 else { return 0 }
        unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: input[..<length]))
        unsafe input = UnsafeRawBufferPointer(rebasing: input[length...])
        return length
    }

    override func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard output.count + bytes.count <= Self.outputBytesMax else { return false }
        unsafe output.append(contentsOf: bytes)
        return true
    }
}
