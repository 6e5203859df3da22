/// A file of the operators' page, which the admin listener serves below `/ui/`. The raw value is its name in URLs.
package enum OperatorsPage: String, CaseIterable {
    case page = "operators.html"
    case style = "operators.css"
    case script = "operators.js"
    case timeline = "timeline.js"
    case verdict = "verdict.js"

    /// `nil` for an unknown file. The empty name is the page itself.
    package init?(name: some StringProtocol) { self.init(rawValue: name.isEmpty ? Self.page.rawValue : String(name)) }

    /// The file, and the media type that it is served with.
    package var content: (bytes: [UInt8], type: String) {
        switch self {
        case .page: (PackageResources.operators_html, "text/html; charset=utf-8")
        case .style: (PackageResources.operators_css, "text/css; charset=utf-8")
        case .script: (PackageResources.operators_js, "text/javascript; charset=utf-8")
        case .timeline: (PackageResources.timeline_js, "text/javascript; charset=utf-8")
        case .verdict: (PackageResources.verdict_js, "text/javascript; charset=utf-8")
        }
    }
}
