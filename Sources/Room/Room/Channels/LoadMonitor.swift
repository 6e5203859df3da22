import Admission
import MediaTypes

/// Polls the media planes for their loads, for the placement of newcomers.
actor LoadMonitor {
    private let planes: [any MediaPlane]
    private let node: NodeDirectory
    /// The request that each plane has not answered yet.
    private var samplers: [MediaLocation: Task<Void, Never>] = [:]

    init(planes: [any MediaPlane], node: NodeDirectory) {
        self.planes = planes
        self.node = node
    }

    /// Asks every plane without an unanswered request. A plane with one gets no newcomers until it answers.
    func sample() {
        for plane in planes {
            let location = plane.location
            if samplers[location] != nil {
                node.withModel { $0.loadMissing(of: location) }
            } else {
                samplers[location] = Task { await self.sample(plane) }
            }
        }
    }

    private func sample(_ plane: any MediaPlane) async {
        let load = await plane.load()
        node.withModel { $0.loadMeasured(load, of: plane.location) }
        samplers[plane.location] = nil
    }

    /// Waits until every plane has answered.
    /// - Returns: whether there was anything to wait for.
    func settle() async -> Bool {
        var didWait = false
        while let sampler = samplers.values.first {
            await sampler.value
            didWait = true
        }
        return didWait
    }
}
