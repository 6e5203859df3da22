internal import COpenSSL

/// What a connection of OpenSSL reads from and writes to, in memory: OpenSSL's BIO without a socket. DTLS and TLS have a
/// subclass each, which says how input ends and what waits of the output.
@safe
open class ConnectionBuffer {
    package init() {}

    /// Moves the next bytes of input into `target`.
    /// - Returns: how many; 0 when OpenSSL has to wait.
    open func read(into target: UnsafeMutableRawBufferPointer) -> Int { 0 }

    /// Takes bytes of output.
    /// - Returns: whether there was room. OpenSSL ends a connection without.
    open func write(_ bytes: UnsafeRawBufferPointer) -> Bool { false }

    /// Answers a BIO control other than a flush, which is always done.
    /// - Returns: 0 for a control that is not supported.
    open func control(_ command: Int32, _ pointer: UnsafeMutableRawPointer?) -> Int { 0 }
}

/// The BIO type whose data pointer is an unretained ``ConnectionBuffer``.
@safe
package enum BufferBIO {
    /// Nobody changes the table of functions after it is made.
    @safe
    private struct Method: @unchecked Sendable {
        let pointer: OpaquePointer?
    }

    private static let method = makeMethod()

    /// Creates a BIO on `buffer`, which must outlive it.
    /// - Returns: `nil` without memory.
    package static func make(_ buffer: ConnectionBuffer) -> OpaquePointer? {
        guard let method = unsafe method.pointer, let bio = unsafe BIO_new(method) else { return nil }
        unsafe BIO_set_data(bio, Unmanaged.passUnretained(buffer).toOpaque())
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }

    private static func makeMethod() -> Method {
        // The index identifies the BIO type; 0x0400 is BIO_TYPE_SOURCE_SINK.
        let kind = BIO_get_new_index() | 0x0400
        guard let method = unsafe BIO_meth_new(kind, "connection buffer") else { return unsafe Method(pointer: nil) }
        _ = unsafe BIO_meth_set_read(method) { bio, target, count in
            guard let bio = unsafe bio, let target = unsafe target, let buffer = unsafe buffer(behind: bio) else {
                return -1
            }
            unsafe nagare_BIO_clear_retry(bio)
            let length = unsafe buffer.read(
                into: UnsafeMutableRawBufferPointer(start: target, count: max(0, Int(count)))
            )
            if length == 0 {
                unsafe nagare_BIO_set_retry_read(bio)
                return -1
            }
            return Int32(truncatingIfNeeded: length)
        }
        _ = unsafe BIO_meth_set_write(method) { bio, bytes, count in
            guard let bio = unsafe bio, let bytes = unsafe bytes, let buffer = unsafe buffer(behind: bio) else {
                return -1
            }
            unsafe nagare_BIO_clear_retry(bio)
            return unsafe buffer.write(UnsafeRawBufferPointer(start: bytes, count: max(0, Int(count)))) ? count : -1
        }
        _ = unsafe BIO_meth_set_ctrl(method) { bio, command, _, pointer in
            if command == BIO_CTRL_FLUSH { return 1 }
            guard let bio = unsafe bio, let buffer = unsafe buffer(behind: bio) else { return 0 }
            return unsafe buffer.control(command, pointer)
        }
        return unsafe Method(pointer: method)
    }
}

/// The buffer that a BIO's data pointer refers to.
private func buffer(behind bio: OpaquePointer) -> ConnectionBuffer? {
    guard let data = unsafe BIO_get_data(bio) else { return nil }
    return unsafe Unmanaged<ConnectionBuffer>.fromOpaque(data).takeUnretainedValue()
}
