import Testing

@testable import Telemetry

@Suite struct TraceContextTests {
    private static let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    @Test(arguments: [
        (valid, true), ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", false),
        ("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03-what the future holds", true),
        ("00-00000000000000000000000000000001-0000000000000001-01", true),
    ])
    func `a valid traceparent is read`(field: String, isSampled: Bool) throws {
        let context = try #require(TraceContext(traceparent: [field]))
        let parts = field.split(separator: "-")
        #expect(context.trace.text == parts[1] && context.span.text == parts[2] && context.isSampled == isSampled)
        #expect(TraceContext(traceparent: [context.traceparent]) == context)
    }

    @Test(arguments: [
        [], [valid, valid], [""], ["-"], [String(valid.dropLast())], [valid + "0"], [valid + "-00"],
        ["ff" + valid.dropFirst(2)], ["cc" + valid.dropFirst(2) + "x"], [valid.uppercased()], [" " + valid],
        ["00-00000000000000000000000000000000-00f067aa0ba902b7-01"],
        ["00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"],
        ["00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
        ["00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01"],
        ["cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-" + String(repeating: "a", count: 100_000)],
        [String(repeating: "é", count: 55)],
    ])
    func `anything else is none`(fields: [String]) {
        #expect(TraceContext(traceparent: fields) == nil)
    }
}
