import JSON

/// A request of the OpenTelemetry protocol, OTLP/HTTP with JSON encoding: `ExportTraceServiceRequest`.
///
/// Unlike Protocol Buffers' own JSON, identifiers are hexadecimal; 64-bit integers are texts, as there.
struct OTLPDocument {
    let resource: [String: String]
    let scope: (name: String, version: String)
    let spans: [Span]

    var json: JSONValue {
        [
            "resourceSpans": [
                [
                    "resource": ["attributes": Self.attributes(resource.mapValues(Span.Value.string))],
                    "scopeSpans": [
                        [
                            "scope": ["name": .string(scope.name), "version": .string(scope.version)],
                            "spans": .array(spans.map(Self.span)),
                        ]
                    ],
                ]
            ]
        ]
    }

    private static func span(_ span: Span) -> JSONValue {
        var document: [String: JSONValue] = [
            "traceId": .string(span.context.trace.text), "spanId": .string(span.context.span.text),
            // The lowest bit of the flags of W3C Trace Context.
            "flags": 1,
            "name": .string(span.name), "kind": .integer(span.kind.rawValue),
            "startTimeUnixNano": .string(String(span.start)), "endTimeUnixNano": .string(String(span.end)),
            "attributes": attributes(span.attributes),
        ]
        document["parentSpanId"] = span.parent.map { .string($0.text) }
        document["status"] = span.error.map { ["code": 2, "message": .string($0)] } ?? [:]
        return .object(document)
    }

    private static func attributes(_ attributes: [String: Span.Value]) -> JSONValue {
        .array(
            attributes.sorted { $0.key < $1.key }.map { key, value in
                ["key": .string(key), "value": document(of: value)]
            }
        )
    }

    private static func document(of value: Span.Value) -> JSONValue {
        switch value {
        case .string(let text): ["stringValue": .string(text)]
        case .integer(let integer): ["intValue": .string(String(integer))]
        case .boolean(let boolean): ["boolValue": .bool(boolean)]
        }
    }
}
