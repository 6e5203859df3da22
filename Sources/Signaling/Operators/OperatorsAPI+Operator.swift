import HTTPTypes
import JSON

// Who asks: programs for operators offer only what their token permits.

extension OperatorsAPI {
    static let operatorOperation = APIOperation(
        id: "getOperator",
        method: .get,
        path: APIOperation.path("/v1/operator"),
        summary: "What the token of the request permits.",
        answer: .object([
            APIProperty(
                "role",
                .choice(OperatorRole.allCases.map(\.rawValue)),
                required: true,
                "operate for all operations, read for those that change nothing."
            ),
            APIProperty("node", .string(0...255), required: true, "The name of this node."),
        ])
    ) { api, call in ["role": .string(call.role.rawValue), "node": .string(api.name)] }
}
