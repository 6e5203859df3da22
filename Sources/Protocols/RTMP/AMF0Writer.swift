import Base

/// Writes values of AMF0 one after the other.
package struct AMF0Writer: Sendable {
    /// What was written so far.
    package private(set) var bytes: [UInt8] = []

    package init() {}

    /// Appends a value. Strings of more than 65,535 bytes become long strings; names of members are cut there.
    package mutating func write(_ value: AMF0Value) {
        switch value {
        case .number(let number):
            append(.number)
            bytes.append(bigEndian: number.bitPattern)
        case .boolean(let flag):
            append(.boolean)
            bytes.append(flag ? 1 : 0)
        case .string(let text): write(text)
        case .object(let members):
            append(.object)
            write(members)
        case .null: append(.null)
        case .undefined: append(.undefined)
        case .ecmaArray(let members):
            append(.ecmaArray)
            bytes.append(bigEndian: UInt32(truncatingIfNeeded: members.count))
            write(members)
        case .strictArray(let elements):
            append(.strictArray)
            bytes.append(bigEndian: UInt32(truncatingIfNeeded: elements.count))
            for element in elements { write(element) }
        case .date(let date):
            append(.date)
            bytes.append(bigEndian: date.bitPattern)
            bytes.append(bigEndian: 0 as UInt16)
        }
    }

    private mutating func append(_ marker: AMF0Marker) { bytes.append(marker.rawValue) }

    private mutating func write(_ text: String) {
        let utf8 = Array(text.utf8)
        if utf8.count <= Int(UInt16.max) {
            append(.string)
            bytes.append(bigEndian: UInt16(utf8.count))
        } else {
            append(.longString)
            bytes.append(bigEndian: UInt32(truncatingIfNeeded: utf8.count))
        }
        bytes += utf8
    }

    private mutating func write(_ members: [AMF0Member]) {
        for member in members {
            let name = member.name.utf8.prefix(Int(UInt16.max))
            bytes.append(bigEndian: UInt16(name.count))
            bytes += name
            write(member.value)
        }
        bytes.append(bigEndian: 0 as UInt16)
        append(.objectEnd)
    }
}
