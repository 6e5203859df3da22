internal import CIPSecMB
public import Wire

/// An implementation of the ciphers. All produce the same bytes.
public enum SRTPBackend: String, Sendable, CaseIterable {
    /// libsrtp2: the reference, and the portable fallback.
    case libsrtp2
    /// OpenSSL's ciphers with reused contexts.
    case openssl
    /// intel-ipsec-mb: SIMD AES, and SHA-1 of many packets at the same time. x86-64 with AES-NI only.
    case ipsecMB = "ipsec-mb"

    /// The backends that this machine's libraries and CPU support, the fastest first.
    public static var available: [SRTPBackend] {
        nagare_imb_is_available() ? [.ipsecMB, .openssl, .libsrtp2] : [.openssl, .libsrtp2]
    }

    /// The fastest available backend.
    public static var preferred: SRTPBackend { available.first ?? .libsrtp2 }
}

/// The SRTP backend of one media loop, with the memory of its batches. An instance belongs to one thread at a time.
@safe
public final class SRTPEngine {
    public let backend: SRTPBackend
    /// Ciphers point to it; `nil` unless the backend is ``SRTPBackend/ipsecMB``.
    let multiBuffer: UnsafeMutablePointer<MultiBuffer>?

    /// - Throws: ``SRTPError/failed`` when the backend is not available on this machine.
    public init(_ backend: SRTPBackend = .preferred) throws(SRTPError) {
        self.backend = backend
        guard backend == .ipsecMB else {
            unsafe multiBuffer = nil
            return
        }
        guard let created = MultiBuffer() else { throw .failed }
        let memory = UnsafeMutablePointer<MultiBuffer>.allocate(capacity: 1)
        unsafe memory.initialize(to: created)
        unsafe multiBuffer = memory
    }

    deinit {
        guard let multiBuffer = unsafe multiBuffer else { return }
        unsafe multiBuffer.deinitialize(count: 1)
        unsafe multiBuffer.deallocate()
    }

    /// Creates the SRTP contexts for one peer. They keep the engine alive and belong to its thread.
    /// - Parameters:
    ///   - sourcesMax: the most sources that the peer may use at a time, RTP and RTCP together.
    ///   - allowsRepeatTransmission: whether a sequence number may be protected again, for streams that are
    ///     retransmitted without RTX. Without it a second packet of the same number is refused, so that the key stream
    ///     is not reused.
    /// - Throws: ``SRTPError/failed`` when a library refuses the keys or cannot allocate memory.
    public func makeTransform(
        _ keys: SRTPKeyingMaterial,
        sourcesMax: Int = 64,
        allowsRepeatTransmission: Bool = true
    ) throws(SRTPError) -> any SRTPTransform {
        switch backend {
        case .libsrtp2:
            try LibSRTPTransform(keys, sourcesMax: sourcesMax, allowsRepeatTransmission: allowsRepeatTransmission)
        case .openssl, .ipsecMB:
            try NativeTransform(
                keys,
                sourcesMax: sourcesMax,
                allowsRepeatTransmission: allowsRepeatTransmission,
                engine: self
            )
        }
    }

    /// Finishes every packet that was passed to an ``SRTPSender`` since the previous call.
    public func flush() { unsafe multiBuffer?.pointee.complete() }
}
