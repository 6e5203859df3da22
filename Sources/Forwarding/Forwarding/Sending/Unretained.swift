/// A reference that is not counted, to an object that something else keeps alive for as long: what a packet follows.
@safe
package struct Unretained<Object: AnyObject>: BitwiseCopyable {
    private let reference: Unmanaged<Object>

    @inline(__always)
    package init(_ object: Object) { unsafe reference = .passUnretained(object) }

    /// The object as a counted reference, where counting does not matter.
    @inline(__always)
    var object: Object { unsafe reference.takeUnretainedValue() }

    /// Lends the object without counting.
    @inline(__always)
    func with<Result>(_ body: (Object) -> Result) -> Result { unsafe reference._withUnsafeGuaranteedRef(body) }

    @inline(__always)
    func refers(to object: Object) -> Bool {
        unsafe reference.toOpaque() == Unmanaged.passUnretained(object).toOpaque()
    }
}
