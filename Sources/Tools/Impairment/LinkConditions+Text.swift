package import Base

/// Why a text does not describe a link, in one sentence for the user.
package struct LinkConditionsError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String

    package init(message: String) { self.message = message }

    package var description: String { message }
}

/// The text of conditions, as the command line takes them: `rate=1M,delay=50ms,queue=300ms`.
///
/// - Rates are bits per second with k, M or G; times have ms or s; shares are percentages; bytes have B, kB or MB.
/// - Several values of one key are separated by `/` or a space: `rate=3M/600k@20s/3M@40s`.
extension LinkConditions {
    /// The names of all keys, each with an example.
    package static let keys: [(name: String, example: String)] = [
        ("rate", "1M or 3M/600k@20s/3M@40s"), ("queue", "300ms, 64kB or 50p"), ("delay", "50ms"), ("jitter", "10ms"),
        ("loss", "2%"), ("burst-loss", "2%:8"), ("policer", "1M:32kB"), ("reorder", "1% or 1%:20ms"),
        ("duplicate", "0.5%"), ("outage", "6s@30s"),
    ]

    /// - Throws: the first mistake in the text.
    package init(parsing text: String) throws(LinkConditionsError) {
        self.init()
        try apply(text)
    }

    /// Changes the conditions that `text` names.
    package mutating func apply(_ text: String) throws(LinkConditionsError) {
        var seen: Set<Substring> = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let part = part.trimmingSpaces
            guard let equals = part.firstIndex(of: "=") else {
                throw .wrong("\"\(part)\" is not NAME=VALUE, such as rate=1M or delay=50ms.")
            }
            let name = part[..<equals]
            guard seen.insert(name).inserted else { throw .wrong("\(name) is given twice.") }
            try set(name, to: part[part.index(after: equals)...])
        }
    }

    private mutating func set(_ name: Substring, to value: Substring) throws(LinkConditionsError) {
        let isParsed: Bool
        switch name {
        case "rate":
            isParsed = Self.rates(value).map { rates = $0 } != nil
        case "queue":
            isParsed = Self.queueLimit(value).map { queueLimit = $0 } != nil
        case "delay":
            isParsed = Self.time(value).map { delay = $0 } != nil
        case "jitter":
            isParsed = Self.time(value).map { jitter = $0 } != nil
        case "loss":
            isParsed = Self.share(value).map { loss = $0 } != nil
        case "burst-loss":
            isParsed = Self.burstLoss(value).map { burstLoss = $0.share > 0 ? $0 : nil } != nil
        case "policer":
            isParsed = Self.policer(value).map { policer = $0.bitsPerSecond > 0 ? $0 : nil } != nil
        case "reorder":
            isParsed = Self.reordering(value).map { (reordering, reorderDelay) = $0 } != nil
        case "duplicate":
            isParsed = Self.share(value).map { duplication = $0 } != nil
        case "outage":
            isParsed = Self.outages(value).map { outages = $0 } != nil
        default:
            let names = Self.keys.map(\.name).joined(separator: ", ")
            throw .wrong("A link has no \"\(name)\": choose from \(names).")
        }
        guard isParsed else {
            let example = Self.keys.first { $0.name == name }?.example ?? ""
            throw .wrong("\(name)=\(value) cannot be read: write \(name)=\(example).")
        }
    }

    // MARK: Values

    private static func list(_ text: Substring) -> [Substring] { text.split { $0 == "/" || $0 == " " } }

    /// A value with what follows the separator.
    private static func pair(_ text: Substring, _ separator: Character) -> (Substring, Substring?) {
        guard let index = text.firstIndex(of: separator) else { return (text, nil) }
        return (text[..<index], text[text.index(after: index)...])
    }

    private static func number(_ text: Substring, max: Double) -> Double? {
        guard let first = text.first, first.isASCII, first.isNumber, let value = Double(text), value.isFinite,
            value >= 0, value <= max
        else { return nil }
        return value
    }

    private static func rates(_ text: Substring) -> [RateStep]? {
        if text == "unlimited" { return [] }
        var steps: [RateStep] = []
        for item in list(text) {
            let (value, at) = pair(item, "@")
            guard let rate = rate(value), let start = at.map({ seconds($0) }) ?? .zero else { return nil }
            // The first step applies from the link's start, and each later one starts after the one before it.
            guard steps.isEmpty ? start == .zero : start > (steps.last?.start ?? .zero) else { return nil }
            steps.append(RateStep(bitsPerSecond: rate, start: start))
        }
        // A link that carries nothing at any time is an outage.
        guard steps.contains(where: { $0.bitsPerSecond > 0 }) else { return nil }
        return steps
    }

    private static func rate(_ text: Substring) -> Int? {
        let factors: [Character: Double] = ["k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9]
        let factor = text.last.flatMap { factors[$0] }
        guard let value = number(factor == nil ? text : text.dropLast(), max: 1e11) else { return nil }
        let rate = (value * (factor ?? 1)).rounded()
        // Slower than 1 kbit/s is a unit that was forgotten.
        guard rate == 0 || (1e3...1e11).contains(rate) else { return nil }
        return Int(rate)
    }

    private static func time(_ text: Substring) -> Interval? {
        let milliseconds: Double
        if text.hasSuffix("ms") {
            guard let value = number(text.dropLast(2), max: 60_000) else { return nil }
            milliseconds = value
        } else if text.hasSuffix("s") {
            guard let value = number(text.dropLast(), max: 60) else { return nil }
            milliseconds = value * 1_000
        } else {
            guard text == "0" else { return nil }
            milliseconds = 0
        }
        return .seconds(milliseconds / 1_000)
    }

    /// A time of the link; seconds may lack their unit.
    private static func seconds(_ text: Substring) -> Interval? {
        let digits = text.hasSuffix("ms") ? text.dropLast(2) : text.hasSuffix("s") ? text.dropLast() : text
        guard let value = number(digits, max: 1e8) else { return nil }
        return .seconds(text.hasSuffix("ms") ? value / 1_000 : value)
    }

    private static func share(_ text: Substring) -> Double? {
        guard text.hasSuffix("%") else { return text == "0" ? 0 : nil }
        return number(text.dropLast(), max: 100).map { $0 / 100 }
    }

    private static func bytes(_ text: Substring) -> Int? {
        guard text.hasSuffix("B") else { return nil }
        let factors: [Character: Double] = ["k": 1e3, "K": 1e3, "M": 1e6]
        let digits = text.dropLast()
        let factor = digits.last.flatMap { factors[$0] }
        guard let value = number(factor == nil ? digits : digits.dropLast(), max: 1e9) else { return nil }
        let bytes = value * (factor ?? 1)
        return (1...1e9).contains(bytes) ? Int(bytes) : nil
    }

    private static func queueLimit(_ text: Substring) -> QueueLimit? {
        if text.hasSuffix("p") {
            guard let packets = Int(text.dropLast()), (1...ImpairedLink<Void>.packetsMax).contains(packets) else {
                return nil
            }
            return .packets(packets)
        }
        return bytes(text).map { .bytes($0) } ?? time(text).map { .time($0) }
    }

    private static func burstLoss(_ text: Substring) -> BurstLoss? {
        let (value, length) = pair(text, ":")
        guard let share = share(value), share < 1, let mean = length.map({ number($0, max: 10_000) }) ?? 5, mean >= 1
        else { return nil }
        return BurstLoss(share: share, meanLength: mean)
    }

    private static func policer(_ text: Substring) -> Policer? {
        let (value, bucket) = pair(text, ":")
        guard let rate = rate(value), let bytes = bucket.map({ bytes($0) }) ?? 32_000, bytes >= 1_500 else {
            return nil
        }
        return Policer(bitsPerSecond: rate, bucketBytes: bytes)
    }

    private static func reordering(_ text: Substring) -> (Double, Interval)? {
        let (value, delay) = pair(text, ":")
        guard let share = share(value), let time = delay.map({ time($0) }) ?? .milliseconds(20) else { return nil }
        return (share, time)
    }

    private static func outages(_ text: Substring) -> [Range<Interval>]? {
        if text == "none" { return [] }
        var ranges: [Range<Interval>] = []
        for item in list(text) {
            let (value, at) = pair(item, "@")
            guard let length = seconds(value), length > .zero, let start = at.flatMap({ seconds($0) }) else {
                return nil
            }
            ranges.append(start..<start + length)
        }
        return ranges.isEmpty ? nil : ranges
    }
}

// MARK: - Descriptions

extension LinkConditions {
    /// The conditions at a time since the link's start, in words: `1 Mbit/s, 50 ms delay, 2% loss`.
    package func summary(at time: Interval) -> String {
        var parts: [String] = []
        if let rate = rate(at: time) { parts.append(Self.words(bitsPerSecond: rate.bitsPerSecond)) }
        if let policer { parts.append("policer \(Self.words(bitsPerSecond: policer.bitsPerSecond))") }
        if delay > .zero { parts.append("\(Self.milliseconds(delay)) ms delay") }
        if jitter > .zero { parts.append("\(Self.milliseconds(jitter)) ms jitter") }
        if loss > 0 { parts.append("\(Self.percent(loss)) loss") }
        if let burstLoss { parts.append("\(Self.percent(burstLoss.share)) burst loss") }
        if reordering > 0 { parts.append("\(Self.percent(reordering)) reordering") }
        if duplication > 0 { parts.append("\(Self.percent(duplication)) duplication") }
        if outages.contains(where: { $0.contains(time) }) { parts.append("outage") }
        return parts.isEmpty ? "unlimited" : parts.joined(separator: ", ")
    }

    /// `600 kbit/s`, `1.5 Mbit/s`.
    package static func words(bitsPerSecond: Int) -> String {
        let kilobits = Double(bitsPerSecond) / 1e3
        return kilobits >= 1_000 ? "\(shortest(kilobits / 1_000)) Mbit/s" : "\(shortest(kilobits)) kbit/s"
    }

    private static func milliseconds(_ interval: Interval) -> String { shortest(interval.seconds * 1_000) }
    private static func percent(_ share: Double) -> String { "\(shortest(share * 100))%" }

    private static func shortest(_ value: Double) -> String {
        let rounded = (value * 100).rounded() / 100
        return rounded == rounded.rounded() ? "\(Int(rounded))" : "\(rounded)"
    }
}

extension LinkConditionsError {
    fileprivate static func wrong(_ message: String) -> Self { Self(message: message) }
}

extension Substring {
    fileprivate var trimmingSpaces: Substring {
        var text = drop { $0 == " " }
        while text.last == " " { text.removeLast() }
        return text
    }
}
