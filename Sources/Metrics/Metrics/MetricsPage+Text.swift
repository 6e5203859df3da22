extension MetricsPage {
    /// The page in the Prometheus text format 0.0.4. Each line ends with a line feed.
    public var text: String {
        var text = ""
        for (name, family) in families.sorted(by: { $0.key < $1.key }) {
            text += "# HELP \(name) \(Self.escaped(family.help, quote: false))\n"
            text += "# TYPE \(name) \(family.kind.rawValue)\n"
            let samples = family.samples.map { (labels: Self.written($0.key), value: $0.value) }
            for sample in samples.sorted(by: { $0.labels < $1.labels }) {
                Self.write(name, sample.labels, sample.value, to: &text)
            }
        }
        return text
    }

    private static func write(_ name: String, _ labels: String, _ value: Value, to text: inout String) {
        let braced = labels.isEmpty ? "" : "{\(labels)}"
        switch value {
        case .integer(let value):
            text += "\(name)\(braced) \(value)\n"
        case .number(let value):
            text += "\(name)\(braced) \(written(value))\n"
        case .histogram(let histogram):
            let separator = labels.isEmpty ? "" : ","
            var cumulative: UInt64 = 0
            for (index, count) in histogram.counts.enumerated() {
                cumulative &+= count
                let bound = index < histogram.bounds.count ? written(histogram.bounds[index]) : "+Inf"
                text += "\(name)_bucket{\(labels)\(separator)le=\"\(bound)\"} \(cumulative)\n"
            }
            text += "\(name)_sum\(braced) \(written(histogram.sum))\n"
            text += "\(name)_count\(braced) \(cumulative)\n"
        }
    }

    private static func written(_ labels: [MetricLabel]) -> String {
        labels.map { "\($0.name)=\"\(escaped($0.value, quote: true))\"" }.joined(separator: ",")
    }

    /// A number in the syntax of Go's `ParseFloat`; integers have no fraction.
    static func written(_ value: Double) -> String {
        guard value.isFinite else { return value.isNaN ? "NaN" : value < 0 ? "-Inf" : "+Inf" }
        // Up to 2⁵³ a `Double` represents every integer exactly.
        if value.magnitude < 9_007_199_254_740_992, let whole = Int64(exactly: value) { return String(whole) }
        return value.description
    }

    /// Escapes backslash and line feed, and in label values also the quotation mark.
    private static func escaped(_ value: String, quote: Bool) -> String {
        var text = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\"" where quote: text += "\\\""
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
