internal import COpenSSL

/// The input and output of one connection's BIO.
@safe
final class StreamBuffer {
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

    fileprivate func read(_ target: UnsafeMutablePointer<CChar>, _ count: Int) -> Int {
        let length = unsafe min(count, input.count)
        guard length > 0, let from = unsafe input.baseAddress else { return 0 }
        unsafe UnsafeMutableRawPointer(target).copyMemory(from: from, byteCount: length)
        unsafe input = UnsafeRawBufferPointer(rebasing: input[length...])
        return length
    }

    /// - Returns: whether there was room.
    fileprivate func write(_ bytes: UnsafePointer<CChar>, _ count: Int) -> Bool {
        guard count >= 0, output.count + count <= Self.outputBytesMax else { return false }
        unsafe output.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: count))
        return true
    }
}

/// The BIO type whose data pointer is an unretained ``StreamBuffer``; the connection owns both.
@safe
enum StreamBIO {
    @safe
    private struct Method: @unchecked Sendable {
        let pointer: OpaquePointer?
    }

    private static let method = makeMethod()

    /// Creates a BIO on `buffer`, which must outlive it.
    static func make(_ buffer: StreamBuffer) -> OpaquePointer? {
        guard let method = unsafe method.pointer, let bio = unsafe BIO_new(method) else { return nil }
        unsafe BIO_set_data(bio, Unmanaged.passUnretained(buffer).toOpaque())
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }

    private static func makeMethod() -> Method {
        // The index identifies the BIO type; 0x0400 is BIO_TYPE_SOURCE_SINK.
        let kind = BIO_get_new_index() | 0x0400
        guard let method = unsafe BIO_meth_new(kind, "stream buffer") else { return unsafe Method(pointer: nil) }
        _ = unsafe BIO_meth_set_read(method) { bio, target, count in
            guard let bio = unsafe bio, let target = unsafe target, let buffer = unsafe streamBuffer(behind: bio)
            else {
                return -1
            }
            unsafe nagare_BIO_clear_retry(bio)
            let length = unsafe buffer.read(target, Int(count))
            if length == 0 {
                unsafe nagare_BIO_set_retry_read(bio)
                return -1
            }
            return Int32(truncatingIfNeeded: length)
        }
        _ = unsafe BIO_meth_set_write(method) { bio, bytes, count in
            guard let bio = unsafe bio, let bytes = unsafe bytes, let buffer = unsafe streamBuffer(behind: bio) else {
                return -1
            }
            unsafe nagare_BIO_clear_retry(bio)
            return unsafe buffer.write(bytes, Int(count)) ? count : -1
        }
        _ = unsafe BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
        return unsafe Method(pointer: method)
    }
}

/// The buffer that a BIO's data pointer refers to.
private func streamBuffer(behind bio: OpaquePointer) -> StreamBuffer? {
    guard let data = unsafe BIO_get_data(bio) else { return nil }
    return unsafe Unmanaged<StreamBuffer>.fromOpaque(data).takeUnretainedValue()
}
