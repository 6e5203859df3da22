internal import COpenSSL
internal import OpenSSLBuffers

/// One TLS connection on a byte stream, without I/O: bytes come in and go out, and the owner reads, writes and closes.
///
/// What waits is bounded: one incomplete record of input, which OpenSSL holds, and ``outputBytesMax`` of output.
@safe
public final class TLSStream {
    public enum Status: Hashable, Sendable {
        case handshaking
        /// Application data can be sent and comes.
        case open
        /// The peer sent close_notify, and nothing more comes.
        case closed
        /// The peer broke the protocol, or sent a fatal alert, or does not take what is sent. An alert may be in the output.
        case failed
    }

    /// The most bytes of one ``send(_:)``: the content of a record (RFC 8446 §5.1).
    public static let recordBytesMax = 16_384
    /// The most bytes that wait to be written.
    public static let outputBytesMax = StreamBuffer.outputBytesMax
    /// The most bytes of a client until its handshake is complete: a ClientHello with post-quantum key shares has two
    /// kilobytes.
    static let handshakeBytesMax = 32_768

    public private(set) var status = Status.handshaking
    private let isServer: Bool
    private let ssl: OpaquePointer
    private let buffer = StreamBuffer()
    private var handshakeBytes = 0

    /// The server's side of a connection.
    /// - Throws: ``TLSError/setup``.
    public convenience init(_ certificate: TLSCertificate) throws(TLSError) {
        try unsafe self.init(certificate.context, isServer: true)
        unsafe SSL_set_accept_state(ssl)
    }

    private init(_ context: OpaquePointer, isServer: Bool) throws(TLSError) {
        self.isServer = isServer
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let ssl = unsafe SSL_new(context) else { throw .setup }
        unsafe self.ssl = ssl
        guard let bio = unsafe BufferBIO.make(buffer) else { throw .setup }
        // One BIO in both directions; the connection owns it from here.
        unsafe SSL_set_bio(ssl, bio, bio)
    }

    /// The client's side of a connection, which trusts any certificate: for tests.
    /// - Parameters:
    ///   - name: the server's name (RFC 6066 §3).
    ///   - minorMax: the newest version that the client offers, TLS 1.`minorMax`.
    public static func client(name: String, minorMax: Int32 = 3) throws(TLSError) -> TLSStream {
        guard let context = unsafe SSL_CTX_new(TLS_client_method()) else { throw .setup }
        defer { unsafe SSL_CTX_free(context) }
        if minorMax < 3 { unsafe nagare_SSL_CTX_limit_tls(context, minorMax) }
        let stream = try unsafe TLSStream(context, isServer: false)
        unsafe SSL_set_connect_state(stream.ssl)
        guard unsafe nagare_SSL_set_name(stream.ssl, name) == 1 else { throw .setup }
        stream.advance { _ in }
        return stream
    }

    deinit { unsafe SSL_free(ssl) }

    /// The protocol version, as `TLSv1.3`.
    public var version: String { unsafe String(cString: SSL_get_version(ssl)) }

    /// What is to be written, and is not returned again.
    public func takeOutput() -> [UInt8] { buffer.takeOutput() }
    public var hasOutput: Bool { !buffer.output.isEmpty }

    /// Takes the next bytes of the connection, and passes the application data that they complete to `deliver`, in pieces of
    /// any length. There may be output afterwards.
    public func receive(_ bytes: RawSpan, _ deliver: (RawSpan) -> Void) {
        guard status == .handshaking || status == .open else { return }
        if status == .handshaking {
            // OpenSSL would wait for a whole record before it looks at its type.
            let isHandshake = !isServer || handshakeBytes > 0 || bytes.isEmpty || Self.startsHandshake(bytes)
            handshakeBytes &+= bytes.byteCount
            guard isHandshake, handshakeBytes <= Self.handshakeBytesMax else {
                status = .failed
                return
            }
        }
        buffer.withInput(bytes) { advance(deliver) }
    }

    /// Whether bytes begin with a record of the handshake (RFC 8446 §5.1).
    private static func startsHandshake(_ bytes: RawSpan) -> Bool {
        unsafe bytes.withUnsafeBytes { unsafe $0.first == 22 }
    }

    private func advance(_ deliver: (RawSpan) -> Void) {
        defer { ERR_clear_error() }
        if status == .handshaking {
            ERR_clear_error()
            let result = unsafe SSL_do_handshake(ssl)
            guard result == 1 else {
                if unsafe SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ { status = .failed }
                return
            }
            status = .open
        }
        unsafe withUnsafeTemporaryAllocation(byteCount: Self.recordBytesMax, alignment: 16) { scratch in
            while status == .open {
                ERR_clear_error()
                let count = unsafe SSL_read(ssl, scratch.baseAddress, Int32(scratch.count))
                if count > 0 {
                    let data = unsafe UnsafeRawBufferPointer(rebasing: scratch[..<Int(count)])
                    deliver(unsafe data.bytes)
                    continue
                }
                switch unsafe SSL_get_error(ssl, count) {
                case SSL_ERROR_WANT_READ: return
                case SSL_ERROR_ZERO_RETURN: status = .closed
                default: status = .failed
                }
            }
        }
    }

    /// Encrypts 1...``recordBytesMax`` bytes as one record, which is in the output then.
    /// - Returns: whether it was encrypted: not before or after ``Status/open``, nor when too much output waits.
    public func send(_ data: RawSpan) -> Bool {
        precondition((1...Self.recordBytesMax).contains(data.byteCount), "data fits a record")
        guard status == .open else { return false }
        ERR_clear_error()
        defer { ERR_clear_error() }
        let result = unsafe data.withUnsafeBytes { bytes in
            unsafe SSL_write(ssl, bytes.baseAddress, Int32(bytes.count))
        }
        guard Int(result) == data.byteCount else {
            status = .failed
            return false
        }
        return true
    }
}
