/// What a metric's value means to the one who reads it.
public enum MetricKind: String, Hashable, Sendable {
    /// Only grows; the name ends in `_total`.
    case counter
    /// Goes up and down.
    case gauge
    /// Counts by range, with their sum.
    case histogram
}

/// One label of a sample: `reason="replayed"`.
public struct MetricLabel: Hashable, Sendable {
    /// `[a-zA-Z_][a-zA-Z0-9_]*`, and not `le`, which belongs to histograms.
    public let name: String
    /// Any text; it is escaped when written.
    public let value: String

    public init(_ name: String, _ value: String) {
        precondition(Self.isName(name) && name != "le", "\(name) is no label name")
        self.name = name
        self.value = value
    }

    private static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, !isDigit(first) else { return false }
        return text.utf8.allSatisfy { isLetterOrUnderscore($0) || isDigit($0) }
    }
}

/// The metrics gathered for one answer to a scrape, written in the Prometheus text format 0.0.4.
///
/// Everything that knows numbers adds its own. What is added twice under the same name and labels is summed, so each
/// loop adds its counters and the page shows the node's. The order of the text is by name, then by labels, whatever the
/// order in which things were added.
public struct MetricsPage: Sendable {
    /// The value of the `Content-Type` header of this format.
    public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    enum Value: Sendable {
        case integer(UInt64)
        case number(Double)
        case histogram(Histogram)
    }

    struct Family: Sendable {
        let kind: MetricKind
        let help: String
        var samples: [[MetricLabel]: Value]
    }

    private(set) var families: [String: Family] = [:]

    public init() {}

    /// Adds a count. `name` ends in `_total` by Prometheus' conventions.
    public mutating func addCounter(_ name: String, help: String, labels: [MetricLabel] = [], _ value: UInt64) {
        add(name, .counter, help, labels, .integer(value))
    }

    /// Adds a count that has a fraction, such as seconds of processor time.
    public mutating func addCounter(_ name: String, help: String, labels: [MetricLabel] = [], seconds value: Double) {
        add(name, .counter, help, labels, .number(value))
    }

    /// Adds a count.
    public mutating func addCounter(_ name: String, help: String, labels: [MetricLabel] = [], _ value: Counter) {
        add(name, .counter, help, labels, .integer(value.value))
    }

    /// Adds a value that goes up and down.
    public mutating func addGauge(_ name: String, help: String, labels: [MetricLabel] = [], _ value: Double) {
        add(name, .gauge, help, labels, .number(value))
    }

    /// Adds a value that goes up and down and is a whole number.
    public mutating func addGauge(_ name: String, help: String, labels: [MetricLabel] = [], _ value: Int) {
        add(name, .gauge, help, labels, .number(Double(value)))
    }

    /// Adds a histogram whose values are in the unit that `name` ends in.
    public mutating func addHistogram(_ name: String, help: String, labels: [MetricLabel] = [], _ value: Histogram) {
        add(name, .histogram, help, labels, .histogram(value))
    }

    /// Adds a histogram of times; `name` ends in `_seconds`.
    public mutating func addHistogram(
        _ name: String,
        help: String,
        labels: [MetricLabel] = [],
        _ value: DurationHistogram
    ) {
        add(name, .histogram, help, labels, .histogram(value.seconds))
    }

    private mutating func add(
        _ name: String,
        _ kind: MetricKind,
        _ help: String,
        _ labels: [MetricLabel],
        _ value: Value
    ) {
        precondition(Self.isName(name), "\(name) is no metric name")
        let labels = labels.sorted { $0.name < $1.name }
        precondition(zip(labels, labels.dropFirst()).allSatisfy { $0.name != $1.name }, "a label is given once")
        var family = families.removeValue(forKey: name) ?? Family(kind: kind, help: help, samples: [:])
        precondition(family.kind == kind, "\(name) is a \(family.kind.rawValue)")
        if let present = family.samples[labels] {
            family.samples[labels] = Self.sum(present, value)
        } else {
            family.samples[labels] = value
        }
        families[name] = family
    }

    private static func sum(_ left: Value, _ right: Value) -> Value {
        switch (left, right) {
        case (.integer(let left), .integer(let right)):
            return .integer(left &+ right)
        case (.histogram(var left), .histogram(let right)):
            left.merge(right)
            return .histogram(left)
        case (.number(let left), .number(let right)):
            return .number(left + right)
        default:
            preconditionFailure("one metric has one kind of value")
        }
    }

    /// `[a-zA-Z_:][a-zA-Z0-9_:]*`; the colon is left to recording rules.
    private static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, !isDigit(first) else { return false }
        return text.utf8.allSatisfy { isLetterOrUnderscore($0) || isDigit($0) }
    }
}

func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

func isLetterOrUnderscore(_ byte: UInt8) -> Bool {
    (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x5F
}
