import Foundation
import Telemetry
import ToolCommands
import Web

/// Where traces of joins go.
struct TraceSettings: Hashable, Sendable {
    /// The base of the collector's URLs, without a slash at the end.
    var endpoint: String
    /// The share of joins that are sampled, 0…1.
    var sampleRatio: Double

    /// `nil` without a collector.
    init?(_ reader: SettingReader) throws(CommandError) {
        let ratio = try reader.ratio(.otlpSampleRatio)
        guard let endpoint = try reader.collector(.otlpEndpoint) else {
            guard ratio == nil else {
                throw .usage(
                    "\(Setting.otlpSampleRatio.flag) needs the address of a collector: \(Setting.otlpEndpoint.flag)."
                )
            }
            return nil
        }
        self.endpoint = endpoint
        sampleRatio = ratio ?? 1
    }

    /// - Parameter node: names the node in each span.
    func exporter(_ node: NodeIdentity) -> SpanExporter.Configuration {
        SpanExporter.Configuration(
            endpoint: endpoint,
            sampleRatio: sampleRatio,
            resource: [
                "service.name": "nagare", "service.version": node.version, "service.instance.id": node.name,
            ],
            version: node.version
        )
    }
}

extension SettingReader {
    fileprivate func ratio(_ setting: Setting) throws(CommandError) -> Double? {
        guard let entry = try entry(setting) else { return nil }
        guard let value = Double(entry.value), (0...1).contains(value) else {
            throw .usage("\(entry.origin) is \"\(entry.value)\": write a number from 0 to 1, as 0.1.")
        }
        return value
    }

    fileprivate func collector(_ setting: Setting) throws(CommandError) -> String? {
        guard let entry = try entry(setting) else { return nil }
        guard let url = URLComponents(string: entry.value), ["http", "https"].contains(url.scheme?.lowercased()),
            url.host?.isEmpty == false, url.fragment == nil, url.query == nil, url.user == nil, url.password == nil
        else {
            throw .usage(
                "\(entry.origin) is not the address of a collector: write it as http://127.0.0.1:4318, without a user, a "
                    + "query or a fragment."
            )
        }
        guard !url.path.hasSuffix("/v1/traces") else {
            throw .usage("\(entry.origin) ends with /v1/traces, which the node appends itself: leave it out.")
        }
        return entry.value.hasSuffix("/") ? String(entry.value.dropLast()) : entry.value
    }
}
