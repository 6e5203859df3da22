import JSON

/// The structure of a JSON value. It both checks values and describes itself in the OpenAPI document (JSON Schema 2020-12).
indirect enum APISchema: Sendable {
    case boolean
    case integer(ClosedRange<Int64>)
    /// A number from 0 to 1.
    case share
    /// A string, with its length in code points.
    case string(ClosedRange<Int>)
    case choice([String])
    case array(APISchema, ClosedRange<Int>, isUnique: Bool)
    /// An object that may have these members. A request's object has no others.
    case object([APIProperty])
    /// An object with any members.
    case freeObject
    /// An object whose members depend on the value of one of them.
    case variants(by: String, [APIVariant])
    /// A value of another schema, or `null`.
    case nullable(APISchema)
    /// An arbitrary value in an answer.
    case any
}

/// One member of an object, or one parameter of a query.
struct APIProperty: Sendable {
    let name: String
    let schema: APISchema
    let isRequired: Bool
    let description: String

    init(_ name: String, _ schema: APISchema, required isRequired: Bool = false, _ description: String) {
        self.name = name
        self.schema = schema
        self.isRequired = isRequired
        self.description = description
    }
}

/// One of the objects that ``APISchema/variants(by:_:)`` permits.
struct APIVariant: Sendable {
    /// The value of the distinguishing member.
    let value: String
    /// The other members.
    let properties: [APIProperty]
}

// MARK: - Checks

extension APISchema {
    /// Checks a value.
    /// - Parameters:
    ///   - name: the value's place, for the error.
    ///   - isAnswer: whether objects may have members that the schema does not name.
    func check(_ value: JSONValue, _ name: String, isAnswer: Bool = false) throws(JSONShapeError) {
        switch self {
        case .any: return
        case .boolean:
            guard value.bool != nil else { throw JSONShapeError("\(name) has to be true or false.") }
        case .integer(let range):
            guard let integer = value.integer, range.contains(Int64(integer)) else {
                throw JSONShapeError(
                    "\(name) has to be a whole number from \(range.lowerBound) to \(range.upperBound)."
                )
            }
        case .share:
            guard let number = value.double, (0...1).contains(number) else {
                throw JSONShapeError("\(name) has to be a number from 0 to 1.")
            }
        case .string(let lengths):
            guard let text = value.string, lengths.contains(text.unicodeScalars.count) else {
                throw JSONShapeError(
                    "\(name) has to be a string of \(lengths.lowerBound) to \(lengths.upperBound) characters."
                )
            }
        case .choice(let choices):
            guard let text = value.string, choices.contains(text) else {
                throw JSONShapeError("\(name) has to be one of \(choices.map { "\"\($0)\"" }.joined(separator: ", ")).")
            }
        case .array(let element, let counts, let isUnique):
            try Self.checkArray(value, name, element, counts, isUnique: isUnique, isAnswer: isAnswer)
        case .object(let properties):
            try Self.checkObject(value, name, properties, isAnswer: isAnswer)
        case .freeObject:
            guard value.object != nil else { throw JSONShapeError("\(name) has to be an object.") }
        case .variants(let key, let variants):
            guard let text = value[key]?.string, let variant = variants.first(where: { $0.value == text }) else {
                let values = variants.map { "\"\($0.value)\"" }.joined(separator: ", ")
                throw JSONShapeError("\(name) has to be an object whose \"\(key)\" is one of \(values).")
            }
            let own = APIProperty(key, .choice([variant.value]), required: true, "")
            try Self.checkObject(value, name, [own] + variant.properties, isAnswer: isAnswer)
        case .nullable(let schema):
            if !value.isNull { try schema.check(value, name, isAnswer: isAnswer) }
        }
    }

    private static func checkArray(
        _ value: JSONValue,
        _ name: String,
        _ element: APISchema,
        _ counts: ClosedRange<Int>,
        isUnique: Bool,
        isAnswer: Bool
    ) throws(JSONShapeError) {
        guard let array = value.array, counts.contains(array.count) else {
            throw JSONShapeError("\(name) has to be an array of \(counts.lowerBound) to \(counts.upperBound) values.")
        }
        guard !isUnique || Set(array).count == array.count else {
            throw JSONShapeError("\(name) has the same value twice; name each once.")
        }
        for item in array { try element.check(item, "each value of \(name)", isAnswer: isAnswer) }
    }

    private static func checkObject(
        _ value: JSONValue,
        _ name: String,
        _ properties: [APIProperty],
        isAnswer: Bool
    ) throws(JSONShapeError) {
        guard let object = value.object else { throw JSONShapeError("\(name) has to be an object.") }
        for property in properties {
            guard let member = object[property.name] else {
                if property.isRequired { throw JSONShapeError("\"\(property.name)\" is missing.") }
                continue
            }
            try property.schema.check(member, "\"\(property.name)\"", isAnswer: isAnswer)
        }
        guard !isAnswer else { return }
        let known = Set(properties.map(\.name))
        guard let unknown = object.keys.sorted().first(where: { !known.contains($0) }) else { return }
        let names = properties.map(\.name).joined(separator: ", ")
        throw JSONShapeError("\"\(unknown.prefix(64))\" is no member of \(name); its members are: \(names).")
    }
}

// MARK: - The OpenAPI document

extension APISchema {
    /// The JSON Schema.
    /// - Parameter isAnswer: whether objects may have members that the schema does not name.
    func document(isAnswer: Bool = false) -> JSONValue {
        switch self {
        case .any: return [:]
        case .boolean: return ["type": "boolean"]
        case .integer(let range):
            return ["type": "integer", "minimum": .integer(range.lowerBound), "maximum": .integer(range.upperBound)]
        case .share: return ["type": "number", "minimum": 0, "maximum": 1]
        case .string(let lengths):
            return [
                "type": "string", "minLength": .integer(lengths.lowerBound), "maxLength": .integer(lengths.upperBound),
            ]
        case .choice(let choices): return ["type": "string", "enum": .array(choices.map { .string($0) })]
        case .array(let element, let counts, let isUnique):
            return [
                "type": "array", "items": element.document(isAnswer: isAnswer), "uniqueItems": .bool(isUnique),
                "minItems": .integer(counts.lowerBound), "maxItems": .integer(counts.upperBound),
            ]
        case .object(let properties): return Self.object(properties, isAnswer: isAnswer)
        case .freeObject: return ["type": "object"]
        case .variants(let key, let variants):
            let objects = variants.map { variant in
                let own = APIProperty(key, .choice([variant.value]), required: true, "What the object is.")
                return Self.object([own] + variant.properties, isAnswer: isAnswer)
            }
            return ["oneOf": .array(objects)]
        case .nullable(let schema): return ["anyOf": [schema.document(isAnswer: isAnswer), ["type": "null"]]]
        }
    }

    private static func object(_ properties: [APIProperty], isAnswer: Bool) -> JSONValue {
        var members: [String: JSONValue] = [:]
        for property in properties {
            var schema = property.schema.document(isAnswer: isAnswer).object ?? [:]
            schema["description"] = .string(property.description)
            members[property.name] = .object(schema)
        }
        var document: [String: JSONValue] = ["type": "object", "properties": .object(members)]
        let required = properties.filter(\.isRequired).map { JSONValue.string($0.name) }
        if !required.isEmpty { document["required"] = .array(required) }
        if !isAnswer { document["additionalProperties"] = false }
        return .object(document)
    }
}
