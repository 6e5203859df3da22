/// How log lines are written.
package enum LogFormat: String, CaseIterable, Sendable {
    /// For people: `2026-11-24T10:00:00.123Z info nagare: peer connected channel=demo peer=3f`.
    case text
    /// For programs: one JSON object a line.
    case json
}
