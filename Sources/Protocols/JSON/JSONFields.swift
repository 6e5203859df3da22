/// Why a JSON value does not have the expected structure, as a sentence for its author.
package struct JSONShapeError: Error, Hashable, CustomStringConvertible {
    package let message: String
    package var description: String { message }

    package init(_ message: String) { self.message = message }
}

/// Reads the members of an object with type checks. A missing member and `null` read as `nil`.
package struct JSONFields {
    package let members: [String: JSONValue]

    package init(_ members: [String: JSONValue]) { self.members = members }

    /// - Throws: ``JSONShapeError`` when the value is not an object.
    package init(_ value: JSONValue) throws(JSONShapeError) {
        guard let members = value.object else { throw JSONShapeError("The text is not a JSON object.") }
        self.members = members
    }

    /// The member without a type check. `null` is not `nil` here.
    package func value(_ name: String) -> JSONValue? { members[name] }

    package func string(_ name: String, bytesMax: Int = 255) throws(JSONShapeError) -> String? {
        guard let value = present(name) else { return nil }
        guard let string = value.string, string.utf8.count <= bytesMax else {
            throw JSONShapeError("\"\(name)\" has to be a string of at most \(bytesMax) bytes.")
        }
        return string
    }

    package func requiredString(_ name: String, bytesMax: Int = 255) throws(JSONShapeError) -> String {
        guard let string = try string(name, bytesMax: bytesMax) else {
            throw JSONShapeError("\"\(name)\" is missing.")
        }
        return string
    }

    package func bool(_ name: String) throws(JSONShapeError) -> Bool? {
        guard let value = present(name) else { return nil }
        guard let bool = value.bool else { throw JSONShapeError("\"\(name)\" has to be true or false.") }
        return bool
    }

    package func integer(_ name: String, _ range: ClosedRange<Int>) throws(JSONShapeError) -> Int? {
        guard let value = present(name) else { return nil }
        guard let integer = value.integer, range.contains(integer) else {
            let bounds = "\(range.lowerBound) to \(range.upperBound)"
            throw JSONShapeError("\"\(name)\" has to be a whole number from \(bounds).")
        }
        return integer
    }

    package func array(_ name: String, countMax: Int) throws(JSONShapeError) -> [JSONValue]? {
        guard let value = present(name) else { return nil }
        guard let array = value.array, array.count <= countMax else {
            throw JSONShapeError("\"\(name)\" has to be an array of at most \(countMax) values.")
        }
        return array
    }

    package func strings(_ name: String, countMax: Int, bytesMax: Int = 255) throws(JSONShapeError) -> [String]? {
        guard let array = try array(name, countMax: countMax) else { return nil }
        var strings: [String] = []
        for value in array {
            guard let string = value.string, string.utf8.count <= bytesMax else {
                throw JSONShapeError("\"\(name)\" has to hold strings of at most \(bytesMax) bytes.")
            }
            strings.append(string)
        }
        return strings
    }

    package func objects(_ name: String, countMax: Int) throws(JSONShapeError) -> [[String: JSONValue]]? {
        guard let array = try array(name, countMax: countMax) else { return nil }
        var objects: [[String: JSONValue]] = []
        for value in array {
            guard let object = value.object else { throw JSONShapeError("\"\(name)\" has to hold objects.") }
            objects.append(object)
        }
        return objects
    }

    package func object(_ name: String) throws(JSONShapeError) -> [String: JSONValue]? {
        guard let value = present(name) else { return nil }
        guard let object = value.object else { throw JSONShapeError("\"\(name)\" has to be an object.") }
        return object
    }

    /// A string that is one of the raw values of `Choice`.
    package func choice<Choice: RawRepresentable & CaseIterable>(
        _ name: String,
        as type: Choice.Type = Choice.self
    ) throws(JSONShapeError) -> Choice? where Choice.RawValue == String {
        guard let value = present(name) else { return nil }
        guard let choice = value.string.flatMap(Choice.init(rawValue:)) else {
            let names = Choice.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
            throw JSONShapeError("\"\(name)\" has to be one of \(names).")
        }
        return choice
    }

    private func present(_ name: String) -> JSONValue? {
        guard let value = members[name], !value.isNull else { return nil }
        return value
    }
}
