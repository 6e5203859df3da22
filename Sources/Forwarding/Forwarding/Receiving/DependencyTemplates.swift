import Wire

/// The template identifiers of a dependency structure, modulo 64.
package struct TemplateIDs: BitwiseCopyable, Sendable {
    let first: UInt8
    let count: UInt8
}

/// The dependency structure of one received stream, as its newest key frame brought it: what the descriptors of the packets
/// after it refer to (AV1 RTP specification, A.8.3).
///
/// It is kept in a table of fixed size, so reading a packet's descriptor allocates nothing and counts no references.
@safe
package final class DependencyTemplates {
    private struct Template: BitwiseCopyable {
        let spatialID: UInt8
        let temporalID: UInt8
        let dependencies: FrameDependencies
    }

    /// `templatesMax` places once a structure came.
    private var templates: UnsafeMutablePointer<Template>?
    private var templateCount = 0
    private var templateIDOffset: UInt8 = 0
    private var targetCount = 0
    private var chainCount = 0
    /// The packet that brought the structure. What was sent before it refers to another one.
    private var installedBy: ExtendedSequenceNumber?
    /// The newest packet that named the active decode targets.
    private var activeNamedBy: ExtendedSequenceNumber?
    /// What the structure's decode targets are.
    private(set) var targets = DecodeTargets()
    /// The sizes that the structure names, by spatial layer; empty when it names none.
    private(set) var resolutions: [DependencyStructure.Resolution] = []

    package init() {}

    deinit { unsafe templates?.deallocate() }

    /// `nil` until a structure came.
    var templateIDs: TemplateIDs? {
        isKnown ? TemplateIDs(first: templateIDOffset, count: UInt8(truncatingIfNeeded: templateCount)) : nil
    }

    /// Whether a structure came.
    var isKnown: Bool { installedBy != nil }

    /// Reads the descriptor of a packet into its description. A descriptor that cannot be read leaves the layers at 0 and the
    /// dependencies unknown.
    func read(_ data: RawSpan, into description: inout PacketDescription) {
        guard let head = DependencyDescriptorHeader(data) else { return }
        description.frameNumber = head.frameNumber
        if head.startsFrame { description.frame.insert(.startsFrame) }
        if head.endsFrame { description.frame.insert(.endsFrame) }
        if head.hasStructure {
            readWithStructure(data, into: &description)
            return
        }
        guard let installedBy, installedBy <= description.sequence, let templates = unsafe templates else { return }
        let index = Int((head.templateID &- templateIDOffset) & 0x3F)
        guard index < templateCount else { return }
        let template = unsafe templates[index]
        guard
            let dependencies = FrameDependencies(
                data,
                template: template.dependencies,
                targetCount: targetCount,
                chainCount: chainCount
            )
        else { return }
        note(template.spatialID, template.temporalID, dependencies, in: &description)
        if let active = DependencyDescriptorHeader.activeTargets(data, targetCount: targetCount) {
            noteActive(active, by: description.sequence)
        }
    }

    /// The newest packet that names the targets counts.
    private func noteActive(_ active: UInt32, by sequence: ExtendedSequenceNumber) {
        if let activeNamedBy, activeNamedBy > sequence { return }
        activeNamedBy = sequence
        targets.active = UInt16(truncatingIfNeeded: active)
    }

    private func note(
        _ spatialID: UInt8,
        _ temporalID: UInt8,
        _ dependencies: FrameDependencies,
        in description: inout PacketDescription
    ) {
        description.spatialID = spatialID
        description.temporalID = temporalID
        description.dependencies = dependencies
        if dependencies.isDiscardable { description.frame.insert(.isDiscardable) }
    }

    /// A structure comes with key frames only, so it may allocate.
    @inline(never)
    private func readWithStructure(_ data: RawSpan, into description: inout PacketDescription) {
        guard let descriptor = try? DependencyDescriptor(data, structure: nil),
            let structure = descriptor.attachedStructure
        else { return }
        let dependencies = FrameDependencies(descriptor, targetCount: structure.decodeTargetCount)
        note(descriptor.spatialID, descriptor.temporalID, dependencies, in: &description)
        // A late packet does not bring an older structure back.
        if let installedBy, installedBy >= description.sequence { return }
        install(structure, by: description.sequence)
        noteActive(descriptor.activeDecodeTargets ?? .max, by: description.sequence)
    }

    /// Of a mirror, whose packets were parsed at their origin: takes the structure of a key frame.
    func readStructure(_ data: RawSpan, of sequence: ExtendedSequenceNumber) {
        if let installedBy, installedBy >= sequence { return }
        guard let descriptor = try? DependencyDescriptor(data, structure: nil),
            let structure = descriptor.attachedStructure
        else { return }
        install(structure, by: sequence)
        noteActive(descriptor.activeDecodeTargets ?? .max, by: sequence)
    }

    private func install(_ structure: DependencyStructure, by sequence: ExtendedSequenceNumber) {
        let target = unsafe templates ?? .allocate(capacity: DependencyStructure.templatesMax)
        unsafe templates = target
        templateCount = min(structure.templates.count, DependencyStructure.templatesMax)
        for index in 0..<templateCount {
            let template = structure.templates[index]
            unsafe (target + index).initialize(
                to: Template(
                    spatialID: template.spatialID,
                    temporalID: template.temporalID,
                    dependencies: FrameDependencies(template, of: structure)
                )
            )
        }
        templateIDOffset = structure.templateIDOffset
        targetCount = structure.decodeTargetCount
        chainCount = structure.chainCount
        resolutions = structure.resolutions
        targets = DecodeTargets(structure)
        installedBy = sequence
    }
}
