/// The identity of a span for other processes (W3C Trace Context, `traceparent`).
package struct TraceContext: Hashable, Sendable {
    /// 16 bytes, not all zero.
    package struct TraceID: Hashable, Sendable {
        let high: UInt64
        let low: UInt64

        /// - Returns: `nil` for zero.
        init?(high: UInt64, low: UInt64) {
            guard high != 0 || low != 0 else { return nil }
            self.high = high
            self.low = low
        }

        /// 32 hexadecimal digits in lower case.
        package var text: String { high.hex + low.hex }
    }

    /// 8 bytes, not all zero.
    package struct SpanID: Hashable, Sendable {
        let value: UInt64

        /// - Returns: `nil` for zero.
        init?(_ value: UInt64) {
            guard value != 0 else { return nil }
            self.value = value
        }

        /// 16 hexadecimal digits in lower case.
        package var text: String { value.hex }
    }

    package let trace: TraceID
    package let span: SpanID
    /// Whether whoever began the trace records it.
    package let isSampled: Bool

    /// The context that outgoing requests carry, of the task that makes them.
    @TaskLocal package static var current: TraceContext?

    init(trace: TraceID, span: SpanID, isSampled: Bool) {
        self.trace = trace
        self.span = span
        self.isSampled = isSampled
    }

    /// The longest field that is read. Later versions may append to the 55 bytes of this one.
    private static let bytesMax = 512

    /// Parses the fields `traceparent` of a request (W3C Trace Context §3.2).
    /// - Returns: `nil` unless there is exactly one, and it is valid.
    package init?(traceparent fields: [String]) {
        guard fields.count == 1, let field = fields.first, field.utf8.count <= Self.bytesMax else { return nil }
        let bytes = Array(field.utf8)
        guard bytes.count >= 55, [2, 35, 52].allSatisfy({ bytes[$0] == UInt8(ascii: "-") }) else { return nil }
        guard let version = Self.hex(bytes[0..<2]), version != 0xFF else { return nil }
        // Version 00 ends here. A later one may go on after another dash.
        guard bytes.count == 55 || (version != 0 && bytes[55] == UInt8(ascii: "-")) else { return nil }
        guard let high = Self.hex(bytes[3..<19]), let low = Self.hex(bytes[19..<35]),
            let parent = Self.hex(bytes[36..<52]), let flags = Self.hex(bytes[53..<55]),
            let trace = TraceID(high: high, low: low), let span = SpanID(parent)
        else { return nil }
        self.init(trace: trace, span: span, isSampled: flags & 1 == 1)
    }

    /// The value of the field `traceparent`.
    package var traceparent: String { "00-\(trace.text)-\(span.text)-\(isSampled ? "01" : "00")" }

    /// Digits in lower case only, at most 16 of them.
    private static func hex(_ digits: ArraySlice<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        for digit in digits {
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt64(digit &- UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt64(digit &- UInt8(ascii: "a") &+ 10)
            default: return nil
            }
        }
        return value
    }
}

extension UInt64 {
    /// 16 hexadecimal digits in lower case.
    fileprivate var hex: String {
        let digits = String(self, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
