import Synchronization

/// Counts the elements of lists that were left out because this build does not understand them. A decoder has it in its
/// `userInfo`.
package final class UnknownElements: Sendable {
    package static let key = CodingUserInfoKey(rawValue: "UnknownElements")

    private let number = Atomic(0)

    package init() {}

    package var count: Int { number.load(ordering: .relaxed) }
    fileprivate func note() { number.add(1, ordering: .relaxed) }
}

/// The elements of a list that this build understands. A later version may know more values.
package struct KnownElements<Element: Decodable>: Decodable {
    package private(set) var elements: [Element] = []

    private struct Skipped: Decodable { init(from decoder: any Decoder) {} }

    package init(from decoder: any Decoder) throws {
        var list = try decoder.unkeyedContainer()
        let unknown = UnknownElements.key.flatMap { decoder.userInfo[$0] as? UnknownElements }
        while !list.isAtEnd {
            do {
                elements.append(try list.decode(Element.self))
            } catch {
                _ = try list.decode(Skipped.self)
                unknown?.note()
            }
        }
    }
}
