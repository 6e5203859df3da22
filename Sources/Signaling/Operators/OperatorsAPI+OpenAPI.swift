import HTTPTypes
import JSON

extension OperatorsAPI {
    /// The OpenAPI 3.1 document of all operations.
    static let document: JSONValue = [
        "openapi": "3.1.0",
        "info": [
            "title": "Nagare, the operators' API", "version": "1",
            "description": "Channels, members, kicks, bans, blocks and tokens of one node.",
        ],
        "paths": .object(paths),
        "security": [["token": []]],
        "components": [
            "securitySchemes": [
                "token": [
                    "type": "http", "scheme": "bearer",
                    "description": .string(
                        "The node's --admin-token, whose role is operate, or its --admin-read-token, whose role is read. The "
                            + "requirement of an operation names the roles that may use it. A node that listens on loopback "
                            + "without a token needs none."
                    ),
                ]
            ],
            "schemas": ["Problem": problem],
        ],
    ]

    private static let problem: JSONValue = [
        "type": "object", "required": ["type", "title", "status", "detail"],
        "properties": [
            "type": ["type": "string", "enum": .array(Problem.Kind.allCases.map { .string($0.uri) })],
            "title": ["type": "string", "description": "The kind of problem, for people."],
            "status": ["type": "integer", "minimum": 400, "maximum": 599],
            "detail": ["type": "string", "description": "What is wrong and what to do."],
            "code": ["type": "integer", "description": "The result code that client SDKs of apps know."],
        ],
    ]

    private static var paths: [String: JSONValue] {
        var paths: [String: [String: JSONValue]] = [:]
        for operation in operations {
            paths[operation.template, default: [:]][operation.method.rawValue.lowercased()] = describe(operation)
        }
        return paths.mapValues { .object($0) }
    }

    private static func describe(_ operation: APIOperation) -> JSONValue {
        var members: [String: JSONValue] = [
            "operationId": .string(operation.id), "summary": .string(operation.summary),
            "responses": .object(responses(operation)),
        ]
        let parameters = operation.path.compactMap(describe) + operation.query.map(describe)
        if !parameters.isEmpty { members["parameters"] = .array(parameters) }
        if let body = operation.body {
            members["requestBody"] = [
                "required": .bool(operation.isBodyRequired),
                "content": ["application/json": ["schema": body.document()]],
            ]
        }
        // The values of a requirement name roles (OpenAPI 3.1, Security Requirement Object).
        let roles = OperatorRole.allCases.filter { $0.permits(operation.role) }.map { JSONValue.string($0.rawValue) }
        members["security"] = operation.isPublic ? .array([]) : [["token": .array(roles)]]
        return .object(members)
    }

    private static func describe(_ segment: APIOperation.Segment) -> JSONValue? {
        guard case .parameter(let parameter) = segment else { return nil }
        return [
            "name": .string(parameter.rawValue), "in": "path", "required": true,
            "description": .string(parameter.description), "schema": parameter.schema.document(),
        ]
    }

    private static func describe(_ property: APIProperty) -> JSONValue {
        [
            "name": .string(property.name), "in": "query", "required": .bool(property.isRequired),
            "description": .string(property.description), "schema": property.schema.document(),
        ]
    }

    private static func responses(_ operation: APIOperation) -> [String: JSONValue] {
        var responses: [String: JSONValue] = [:]
        var success: [String: JSONValue] = ["description": .string(operation.answer == nil ? "Done." : "The answer.")]
        if let answer = operation.answer {
            success["content"] = ["application/json": ["schema": answer.document(isAnswer: true)]]
        }
        responses[String(operation.status)] = .object(success)
        for (status, kinds) in Dictionary(grouping: operation.allProblems, by: \.status) {
            responses[String(status)] = [
                "description": .string(kinds.map(\.title).joined(separator: "; ") + "."),
                "content": ["application/problem+json": ["schema": ["$ref": "#/components/schemas/Problem"]]],
            ]
        }
        return responses
    }
}
