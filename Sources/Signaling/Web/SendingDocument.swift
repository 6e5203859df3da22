import Base
package import JSON
import MediaTypes
import Wire

extension PeerStatistics {
    /// The answer of `GET /sessions/{id}/statistics` and of the request `statistics`: what a viewer is sent, and why not more.
    package var sendingDocument: JSONValue {
        [
            "sending": sending.json,
            "slots": .array(
                sent.map { slot in
                    var members = slot.layers
                    members["mid"] = .string(slot.mid.value)
                    members["kind"] = .string(slot.kind.rawValue)
                    members["playing"] = .bool(slot.source != nil)
                    return .object(members)
                }
            ),
        ]
    }
}

extension SendingStatistics {
    /// Rates are in bit/s from the IP header on, times in milliseconds, loss and shares fractions from 0 to 1.
    package var json: JSONValue {
        var members: [String: JSONValue] = [
            "state": .string(state.rawValue),
            "limit": .string(limit.rawValue),
            "feedback": .string(feedback.rawValue),
            "target_bits_per_second": .integer(target),
            "demand_bits_per_second": .integer(demand),
            "pacing_bits_per_second": .integer(pacing),
            "queue_delay_msec": queueDelay.milliseconds,
            "pacer_delay_msec": pacerDelay.milliseconds,
            "loss": .double(lossRatio),
            "retransmission_share": .double(retransmissionShare),
            "probes": .integer(probes),
            "padding_byte_size": .integer(paddingBytes),
        ]
        members["delivered_bits_per_second"] = delivered.map { .integer($0) }
        return .object(members)
    }
}

extension PeerStatistics.Sent {
    /// The layers of the source that the receiver wants, is to be sent and is sent; absent ones are none.
    package var layers: [String: JSONValue] {
        ["wanted": wanted, "target": target, "current": current].compactMapValues { $0?.json }
    }
}

extension LayerDescription {
    fileprivate var json: JSONValue {
        var members: [String: JSONValue] = [
            "spatial_id": .integer(spatialID), "temporal_id": .integer(temporalID),
            "bits_per_second": .integer(bitsPerSecond),
        ]
        members["rid"] = rid.map { .string($0.value) }
        members["height"] = height.map { .integer($0) }
        return .object(members)
    }
}

extension Interval {
    package var milliseconds: JSONValue { .double((Double(nanoseconds) / 1e4).rounded() / 100) }
}
