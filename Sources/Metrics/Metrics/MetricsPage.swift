/// The type of a metric in Prometheus.
public enum MetricKind: String, Hashable, Sendable {
    /// Only increases; the name ends in `_total`.
    case counter
    /// Goes up and down.
    case gauge
    /// Counts per bucket, with the sum of the values.
    case histogram
}

/// One label of a sample: `reason="replayed"`.
public struct MetricLabel: Hashable, Sendable {
    /// `[a-zA-Z_][a-zA-Z0-9_]*`, but not `le`, which is for the buckets of histograms.
    public let name: String
    /// Any text; it is escaped when written.
    public let value: String

    public init(_ name: String, _ value: String) {
        precondition(isName(name) && name != "le", "\(name) is not a label name")
        self.name = name
        self.value = value
    }
}

/// The metrics of one scrape, in the Prometheus text format 0.0.4.
///
/// Samples with the same name and labels are summed, so each loop adds its counters and the page shows those of the
/// node. The text is sorted by name, then by labels.
public struct MetricsPage: Sendable {
    /// The `Content-Type` of this format.
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

    /// Adds a counter. By convention `name` ends in `_total`.
    public mutating func addCounter(_ name: String, help: String, labels: [MetricLabel] = [], _ value: UInt64) {
        add(name, .counter, help, labels, .integer(value))
    }

    /// Adds a counter with fractions, such as seconds of CPU time.
    public mutating func addCounter(_ name: String, help: String, labels: [MetricLabel] = [], seconds value: Double) {
        add(name, .counter, help, labels, .number(value))
    }

    /// Adds a gauge.
    public mutating func addGauge(_ name: String, help: String, labels: [MetricLabel] = [], _ value: Double) {
        add(name, .gauge, help, labels, .number(value))
    }

    /// Adds a gauge with an integer value.
    public mutating func addGauge(_ name: String, help: String, labels: [MetricLabel] = [], _ value: Int) {
        add(name, .gauge, help, labels, .number(Double(value)))
    }

    /// Adds a histogram. By convention `name` ends in the unit of the values.
    public mutating func addHistogram(_ name: String, help: String, labels: [MetricLabel] = [], _ value: Histogram) {
        add(name, .histogram, help, labels, .histogram(value))
    }

    /// Adds a histogram of durations in seconds; `name` ends in `_seconds`.
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
        precondition(isName(name), "\(name) is not a metric name")
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
}

/// `[a-zA-Z_][a-zA-Z0-9_]*`. A metric name may also have colons, which are for recording rules.
private func isName(_ text: String) -> Bool {
    guard let first = text.utf8.first, !isDigit(first) else { return false }
    return text.utf8.allSatisfy { isLetterOrUnderscore($0) || isDigit($0) }
}

private func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

private func isLetterOrUnderscore(_ byte: UInt8) -> Bool {
    (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x5F
}
