/// A value of the Action Message Format, version 0 (AMF0 §2).
package indirect enum AMF0Value: Hashable, Sendable {
    case number(Double)
    case boolean(Bool)
    /// A string or a long string. Bytes that are not UTF-8 are replaced.
    case string(String)
    case object([AMF0Member])
    case null
    case undefined
    case ecmaArray([AMF0Member])
    case strictArray([AMF0Value])
    /// Milliseconds since 1970 in UTC.
    case date(Double)

    /// The text of a string; `nil` of another value.
    package var string: String? {
        if case .string(let text) = self { text } else { nil }
    }
    /// The number; `nil` of another value.
    package var number: Double? {
        if case .number(let number) = self { number } else { nil }
    }
    /// The members of an object or an ECMA array; none of another value.
    package var members: [AMF0Member] {
        switch self {
        case .object(let members), .ecmaArray(let members): members
        default: []
        }
    }
    /// The elements of a strict array; none of another value.
    package var elements: [AMF0Value] {
        if case .strictArray(let elements) = self { elements } else { [] }
    }
    /// The first member of a name.
    package subscript(_ name: String) -> AMF0Value? { members.first { $0.name == name }?.value }
}

/// A named value of an object or an ECMA array.
package struct AMF0Member: Hashable, Sendable {
    package let name: String
    package let value: AMF0Value

    package init(_ name: String, _ value: AMF0Value) {
        self.name = name
        self.value = value
    }
}

/// What is wrong with a value in AMF0.
package enum AMF0Error: Error, Hashable, Sendable, CustomStringConvertible {
    /// The bytes end inside a value.
    case truncated
    /// A type that AMF0 reserves, or that no encoder sends.
    case unknownMarker(UInt8)
    /// Values lie within each other deeper than ``AMF0Reader/depthMax``.
    case tooDeep
    /// An object or array has more than ``AMF0Reader/membersMax`` members.
    case tooManyMembers
    /// A message has more than ``AMF0Reader/valuesMax`` values.
    case tooManyValues
    /// A message that must begin with a name does not.
    case missingName

    package var description: String {
        switch self {
        case .truncated: "A message in AMF0 ends inside a value."
        case .unknownMarker(let marker): "A message in AMF0 has a value of the unknown type \(marker)."
        case .tooDeep: "A message in AMF0 has values within each other deeper than \(AMF0Reader.depthMax)."
        case .tooManyMembers: "A message in AMF0 has an object of more than \(AMF0Reader.membersMax) members."
        case .tooManyValues: "A message in AMF0 has more than \(AMF0Reader.valuesMax) values."
        case .missingName: "A message in AMF0 does not begin with a name."
        }
    }
}

/// The types on the wire (AMF0 §2.1).
enum AMF0Marker: UInt8 {
    case number = 0
    case boolean = 1
    case string = 2
    case object = 3
    case null = 5
    case undefined = 6
    case ecmaArray = 8
    case objectEnd = 9
    case strictArray = 10
    case date = 11
    case longString = 12
}
