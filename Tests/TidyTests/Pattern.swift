import Foundation

/// A regular expression of Foundation. Over all sources it takes a second where one of the standard library takes a minute.
struct Pattern: @unchecked Sendable {
    static let importing = Pattern(known: #"(?m)^\s*(@testable |public |package |internal )*import [A-Za-z0-9]+"#)

    private let expression: NSRegularExpression

    init(_ text: String) throws { expression = try NSRegularExpression(pattern: text) }

    private init(known text: String) {
        guard let pattern = try? Pattern(text) else { preconditionFailure("\(text) is no pattern") }
        self = pattern
    }

    func matches(_ text: String) -> Bool {
        expression.firstMatch(in: text, range: NSRange(location: 0, length: text.utf16.count)) != nil
    }
}
