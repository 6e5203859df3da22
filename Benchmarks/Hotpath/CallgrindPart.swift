import Foundation

/// One callgrind output file: the instructions and calls between two dumps.
struct CallgrindPart {
    /// The name given to `nagare_collect_end`.
    var name = ""
    /// Instructions by the name of the executable or library that contains the code, without its folder.
    var byObject: [String: Int] = [:]
    /// Calls of functions that a hot path must not call, by callee and caller.
    var calls: [Call: Int] = [:]

    struct Call: Hashable {
        /// The category of the callee: see ``kinds``.
        var kind: String
        var caller: String
    }

    /// The category of each callee. Calls within the runtime count too.
    private static let kinds: [String: String] = [
        "swift_retain": "retains", "swift_retain_n": "retains", "swift_tryRetain": "retains",
        "swift_unownedRetainStrong": "retains", "swift_unownedRetain": "retains", "swift_weakLoadStrong": "retains",
        "swift_release": "releases", "swift_release_n": "releases", "swift_unownedRelease": "releases",
        "malloc": "allocations", "calloc": "allocations", "realloc": "allocations", "posix_memalign": "allocations",
        "aligned_alloc": "allocations", "memalign": "allocations",
        "pthread_mutex_lock": "locks", "pthread_rwlock_rdlock": "locks", "pthread_rwlock_wrlock": "locks",
        "swift_allocObject": "objects", "swift_slowAlloc": "objects",
        "swift_beginAccess": "exclusivity", "swift_once": "onces",
    ]
    /// Encryption libraries.
    private static let cryptoObjects = ["libcrypto", "libIPSec_MB", "libsrtp", "libfreebl", "libsoftokn", "libnss"]

    var instructions: Int { byObject.values.reduce(0, +) }

    /// Instructions in encryption libraries.
    var cryptoInstructions: Int {
        byObject.filter { object in Self.cryptoObjects.contains { object.key.hasPrefix($0) } }
            .reduce(0) { $0 + $1.value }
    }

    func count(of kind: String) -> Int { calls.reduce(0) { $0 + ($1.key.kind == kind ? $1.value : 0) } }

    /// The callers of functions of a category, the most frequent first.
    func callers(of kind: String) -> [(caller: String, count: Int)] {
        calls.filter { $0.key.kind == kind }.map { ($0.key.caller, $0.value) }.sorted { $0.1 > $1.1 }
    }

    /// Reads a file in callgrind's format, version 1, with abbreviated names.
    init(contentsOf path: String) throws {
        var reader = Reader()
        for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") { reader.read(line) }
        self = reader.part
    }

    private init() {}

    static func + (left: Self, right: Self) -> Self {
        var sum = left
        sum.byObject.merge(right.byObject, uniquingKeysWith: +)
        sum.calls.merge(right.calls, uniquingKeysWith: +)
        return sum
    }

    private struct Reader {
        var part = CallgrindPart()
        private var names: [String: String] = [:]
        private var object = ""
        private var function = ""
        private var callee = ""
        private var skipsNext = false

        mutating func read(_ line: Substring) {
            if skipsNext {
                // This line has the inclusive cost of the call. The callee's own lines already count it.
                skipsNext = false
                return
            }
            if let first = line.first, "+-*0123456789".contains(first) {
                let cost = line.split(separator: " ").last.flatMap { Int($0) } ?? 0
                part.byObject[object, default: 0] += cost
                return
            }
            if let text = line.after("calls=") {
                let count = text.split(separator: " ").first.flatMap { Int($0) } ?? 0
                // The counting definitions in the executable only forward the call.
                if let kind = CallgrindPart.kinds[callee], callee != function || object != "hotpath" {
                    part.calls[Call(kind: kind, caller: function), default: 0] += count
                }
                skipsNext = true
            } else if let text = line.after("ob=") {
                object = file(resolve(text, in: "ob"))
            } else if let text = line.after("cob=") {
                _ = resolve(text, in: "ob")
            } else if let text = line.after("fn=") {
                function = symbol(text)
            } else if let text = line.after("cfn=") {
                callee = symbol(text)
            } else if let text = line.after("fl=") ?? line.after("fi=") ?? line.after("fe=") ?? line.after("cfi=")
                ?? line.after("cfl=")
            {
                _ = resolve(text, in: "fl")
            } else if let text = line.after("desc: Trigger: Client Request: ") {
                part.name = String(text)
            }
        }

        /// `(7) name` the first time, `(7)` from then on.
        private mutating func resolve(_ text: Substring, in space: String) -> String {
            guard text.hasPrefix("("), let end = text.firstIndex(of: ")") else { return String(text) }
            let key = space + text[...end]
            let name = text[text.index(after: end)...].drop { $0 == " " }
            if !name.isEmpty { names[key] = String(name) }
            return names[key] ?? ""
        }

        /// A function's name without its symbol version and its recursion level.
        private mutating func symbol(_ text: Substring) -> String {
            resolve(text, in: "fn").split { $0 == "@" || $0 == "'" }.first.map(String.init) ?? ""
        }

        private func file(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? "" }
    }
}

extension Substring {
    fileprivate func after(_ prefix: String) -> Substring? { hasPrefix(prefix) ? dropFirst(prefix.count) : nil }
}
