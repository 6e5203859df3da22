/// A part of a picture in SVG with time from left to right, in seconds. Its colours suit light and dark pages.
public struct ChartPanel: Sendable {
    /// In pixels, from the picture's top.
    public var top: Double
    public var height: Double
    /// The value of the upper edge.
    public var maximum: Double
    /// The second of the right edge.
    public var end: Double

    public init(top: Double, height: Double, maximum: Double, end: Double) {
        self.top = top
        self.height = height
        self.maximum = maximum
        self.end = end
    }

    public typealias Points = [(seconds: Double, value: Double)]

    public static let left = 52.0
    public static let width = 730.0
    public static let gray = "#767676"

    public func x(_ seconds: Double) -> Double { Self.left + seconds / end * Self.width }
    public func y(_ value: Double) -> Double { top + height - min(value, maximum) / maximum * height }

    private func path(_ points: Points) -> String {
        points.map { "\(x($0.seconds).fixed(1)),\(y($0.value).fixed(1))" }.joined(separator: " ")
    }

    public func line(_ points: Points, _ color: String, width: Double, opacity: Double = 0.9) -> String {
        "<polyline fill=\"none\" stroke=\"\(color)\" stroke-width=\"\(width)\" stroke-opacity=\"\(opacity)\" "
            + "points=\"\(path(points))\"/>\n"
    }

    /// The corners of a line whose value stays until the next point, up to the right edge.
    public func steps(_ points: Points) -> Points {
        var corners: Points = []
        for point in points {
            if let last = corners.last {
                if last.value != point.value { corners += [(point.seconds, last.value), point] }
            } else {
                corners.append(point)
            }
        }
        return corners + (corners.last.map { [(end, $0.value)] } ?? [])
    }

    /// A gray area below a value that stays until the next point.
    public func area(_ points: Points) -> String {
        let corners = steps(points)
        let outline = [(corners.first?.seconds ?? 0, 0)] + corners + [(end, 0)]
        return "<polygon fill=\"\(Self.gray)\" fill-opacity=\"0.2\" points=\"\(path(outline))\"/>\n"
    }

    /// Bars over the whole height.
    public func bars(_ times: [(start: Double, end: Double)], _ color: String, opacity: Double) -> String {
        times.map { start, end in
            let width = max(x(end) - x(start), 0.7)
            return "<rect x=\"\(x(start).fixed(1))\" y=\"\(top.fixed(1))\" width=\"\(width.fixed(1))\" "
                + "height=\"\(height.fixed(1))\" fill=\"\(color)\" fill-opacity=\"\(opacity)\"/>\n"
        }.joined()
    }

    /// The label above, and lines of round values.
    public func axis(_ label: String) -> String {
        let values = Array(stride(from: 0, through: maximum, by: Self.step(maximum)))
        return axis(label, values.map { ($0, $0.short) })
    }

    /// The label above, and lines of named values.
    public func axis(_ label: String, _ values: [(value: Double, name: String)]) -> String {
        var svg =
            "<text x=\"\(Self.left.fixed(0))\" y=\"\((top - 8).fixed(0))\" fill=\"\(Self.gray)\">\(label)</text>\n"
        for (value, name) in values {
            svg += "<line x1=\"\(Self.left)\" x2=\"\(Self.left + Self.width)\" y1=\"\(y(value).fixed(1))\" "
            svg += "y2=\"\(y(value).fixed(1))\" stroke=\"\(Self.gray)\" stroke-opacity=\"0.3\"/>\n"
            svg += "<text x=\"\(Self.left - 6)\" y=\"\((y(value) + 4).fixed(1))\" fill=\"\(Self.gray)\" "
            svg += "text-anchor=\"end\">\(name)</text>\n"
        }
        return svg
    }

    public func timeAxis() -> String {
        stride(from: 0, through: end, by: end > 60 ? 20 : 10).map { seconds in
            "<text x=\"\(x(seconds).fixed(1))\" y=\"\((top + height + 18).fixed(0))\" "
                + "fill=\"\(Self.gray)\" text-anchor=\"middle\">\(seconds.short) s</text>\n"
        }.joined()
    }

    /// Three to six lines.
    private static func step(_ maximum: Double) -> Double {
        [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500].first { maximum / $0 <= 6 } ?? 1_000
    }
}

/// A picture in SVG of panels below each other.
public enum Chart {
    public static func svg(
        _ title: String,
        height: Double,
        _ legend: [(name: String, color: String)],
        _ content: String
    ) -> String {
        var svg = """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 \(height.short)" font-family="sans-serif" font-size="12">
            <title>\(title)</title>

            """
        svg += content
        var right = 800.0
        for (name, color) in legend.reversed() {
            right -= 34 + 7 * Double(name.count)
            svg += "<rect x=\"\(right)\" y=\"9\" width=\"14\" height=\"4\" fill=\"\(color)\"/>\n"
            svg += "<text x=\"\(right + 20)\" y=\"15\" fill=\"\(ChartPanel.gray)\">\(name)</text>\n"
        }
        return svg + "</svg>\n"
    }
}

extension Double {
    /// Without a fraction where there is none.
    public var short: String { self == rounded() ? "\(Int(self))" : "\(self)" }

    /// Rounded to a number of decimals, written with all of them.
    public func fixed(_ decimals: Int) -> String {
        guard isFinite else { return "∞" }
        var scale = 1
        for _ in 0..<decimals { scale *= 10 }
        let scaled = Int((abs(self) * Double(scale)).rounded())
        let sign = self < 0 && scaled > 0 ? "-" : ""
        if decimals == 0 { return "\(sign)\(scaled)" }
        let fraction = String(scaled % scale)
        return "\(sign)\(scaled / scale)." + String(repeating: "0", count: decimals - fraction.count) + fraction
    }
}
