import Foundation
import Testing

/// Enforces architecture rules that the compiler does not check.
@Suite struct TidyTests {
    /// Take bytes and an instant, give decisions: no clock, no input or output, no logging, no unseeded randomness.
    static let sansIOModules = [
        "Base", "Wire", "ICE", "TURN", "OpenSSLBuffers", "DTLS", "TLS", "SRTP", "SCTP", "Signatures", "Deflate",
        "CongestionControl", "Metrics",
        "MediaTypes", "Negotiation", "Forwarding", "Admission", "ChannelData", "Impairment", "Client",
    ]
    /// Folders of other modules for which the same holds.
    static let sansIOFolders = [
        "Sources/Room/Room/Model/", "Sources/Room/Cluster/Membership/", "Sources/Room/Cluster/Replicas/",
        "Sources/NagareClient/Core/",
    ]

    /// They have locks, which modules above the cores use.
    static let sansIOExceptions: Set = ["Sources/Base/Inbox.swift", "Sources/Base/Replaceable.swift"]

    /// Each system library and the modules that may import it.
    static let libraryOwners: [String: Set<String>] = [
        "CUV": ["EventLoop"], "CDatagram": ["EventLoop"],
        "COpenSSL": ["OpenSSLBuffers", "DTLS", "TLS", "SRTP", "Signatures"],
        "CSRTP": ["SRTP"], "CIPSecMB": ["SRTP"], "CPrefetch": ["CongestionControl", "Forwarding"],
        "CZlib": ["Deflate"],
        "CHiredis": ["Cluster"], "CSQLite": ["History"],
    ]

    /// Modules of the product, in the order of the manifest.
    static let modules = Manifest.targets.filter { $0.folder.hasPrefix("Sources/") }

    static let files = SourceTree.swiftFiles(under: "Sources")
    static let testFiles = SourceTree.swiftFiles(under: "Tests")

    @Test func `the sources are found`() {
        let modules = Set(Self.files.map(\.module))
        #expect(
            modules == Set(Self.modules.map(\.name)),
            "each file is in a module of the manifest, and each module has files"
        )
        for folder in Self.sansIOFolders { #expect(Self.files.contains { $0.path.hasPrefix(folder) }) }
    }

    @Test(arguments: [
        (#"\b(ContinuousClock|SuspendingClock|DispatchTime|clock_gettime|gettimeofday)\b"#, "a clock"),
        (#"\b(Task\.sleep|usleep|nanosleep|sleep\()"#, "sleep"),
        (#"\b(print|debugPrint|dump|NSLog)\("#, "output"),
        (#"\bimport (Foundation|FoundationEssentials|Dispatch|Logging|Glibc|NIOCore)\b"#, "an import"),
        (#"\b(SystemRandomNumberGenerator|UUID)\("#, "unseeded randomness"),
        (
            #"\.(random\(in:[^,)]*\)|randomElement\(\)|shuffled\(\)|shuffle\(\))|\bBool\.random\(\)"#,
            "unseeded randomness"
        ),
        (#"\b(Task|Task\.detached)(\.init)?\s*\{"#, "a task"),
        (#"\b(Mutex<|NSLock|pthread_mutex|DispatchQueue)"#, "a lock"),
    ])
    func `a sans-IO module does no I/O`(pattern: String, what: String) throws {
        let offences = try Self.offences(pattern) { file in
            guard !Self.sansIOExceptions.contains(file.path) else { return false }
            return Self.sansIOModules.contains(file.module) || Self.sansIOFolders.contains { file.path.hasPrefix($0) }
        }
        #expect(offences.isEmpty, "\(what) in a sans-IO module")
    }

    @Test(arguments: [#"\btry!"#, #"\bas!"#])
    func `product code has no trapping shortcuts`(pattern: String) throws {
        #expect(try Self.offences(pattern) { _ in true }.isEmpty)
    }

    @Test func `a system library is imported by its module only, and internally`() throws {
        for (library, owners) in Self.libraryOwners {
            let strangers = try Self.offences(#"\bimport \#(library)\b"#) { !owners.contains($0.module) }
            #expect(strangers.isEmpty)
            let leaks = try Self.offences(#"\b(public|package) import \#(library)\b"#) { _ in true }
            #expect(leaks.isEmpty)
        }
    }

    @Test func `the order of the manifest is that of the arrows`() {
        let names = Set(Self.modules.map(\.name))
        var above: Set<String> = []
        for module in Self.modules {
            let below = module.dependencies.intersection(names).subtracting(above)
            #expect(below == [], "\(module.name) stands above them in Package.swift")
            above.insert(module.name)
        }
    }

    @Test(arguments: Manifest.targets)
    func `a target depends on exactly the modules that it imports`(target: Manifest.Target) throws {
        let files = SourceTree.swiftFiles(under: target.folder)
        try #require(!files.isEmpty, "\(target.folder) has no sources")
        let imported = Set(files.flatMap { $0.imports.compactMap { Manifest.importedModule($0.text) } })
        #expect(target.dependencies.subtracting(imported) == [], "declared in Package.swift and not imported")
        let undeclared = imported.subtracting(target.dependencies).subtracting(Manifest.undeclaredModules)
        #expect(undeclared == [], "imported and not declared in Package.swift")
    }

    @Test func `what no other package can use is not public`() throws {
        #expect(Manifest.offeredModules.isSuperset(of: ["Wire", "Forwarding", "NagareClient"]))
        let offences = try Self.offences(#"(?m)^\s*(@\w+(\([^)]*\))? )*public\b"#) { file in
            !Manifest.offeredModules.contains(file.module)
        }
        #expect(offences.isEmpty, "`package` reaches every target of this package")
    }

    /// Apps build it without the rest of the package.
    @Test func `the client for apps depends on nothing`() throws {
        let client = try #require(Manifest.targets.first { $0.name == "NagareClient" })
        #expect(client.dependencies == [])
        let imports = Self.files.filter { $0.module == "NagareClient" }.flatMap(\.imports)
            .compactMap { Manifest.importedModule($0.text) }
        #expect(Set(imports) == ["Foundation"])
    }

    @Test func `the manifest's targets are found`() {
        let names = Set(Manifest.targets.map(\.name))
        #expect(names.isSuperset(of: ["Wire", "Forwarding", "EventLoop", "Room", "Signaling", "nagare", "WireTests"]))
        let signaling = Manifest.targets.first { $0.name == "Signaling" }
        #expect(signaling?.dependencies.isSuperset(of: ["Room", "Hummingbird", "NIOCore"]) == true)
    }

    @Test func `each lock is in the list, with what it guards`() throws {
        let listed = SharedState.locks.mapValues { $0.count }
        #expect(try Self.counts(#"(\b(let|var) \w+ = Mutex(<|\()|: Mutex<)"#) == listed)
        #expect(SharedState.locks.values.allSatisfy { !$0.guards.isEmpty })
        #expect(
            try Self.offences(#"\b(NSLock|NSRecursiveLock|pthread_mutex\w*|DispatchSemaphore|OSAllocatedUnfairLock)\b"#)
            { _ in true } == []
        )
    }

    @Test func `each promise of being Sendable is in the list, with its reason`() throws {
        #expect(try Self.counts("@unchecked Sendable") == SharedState.unchecked.mapValues { $0.count })
        #expect(SharedState.unchecked.values.allSatisfy { !$0.reason.isEmpty })
    }

    @Test(arguments: Glossary.words)
    func `a word of the glossary is in the names of its own types only`(word: Glossary.Word) throws {
        let declaration = try Regex(
            #"\b(?:struct|class|enum|actor|protocol|typealias) ([A-Za-z]*\#(word.word)s?(?![a-z])[A-Za-z]*)"#,
            as: (Substring, Substring).self
        )
        let others = Self.files.filter { !word.owners.contains($0.module) }.flatMap { file in
            file.codeText.matches(of: declaration).map { String($0.1) }.filter { !word.owners.contains($0) }
                .map { "\(file.path): \($0)" }
        }
        #expect(others == [], "\(word.word) is \(word.meaning)")
    }

    @Test func `no file has a machine-specific path`() throws {
        let pattern = #""(/home/|/root/|/work/|/Users/|/opt/)"#
        #expect(try Self.offences(pattern) { _ in true }.isEmpty)
        let tests = Self.testFiles.filter { $0.module != "TidyTests" }
        #expect(try Self.offences(pattern, in: tests) { _ in true }.isEmpty)
    }

    @Test func `tests do not sleep`() throws {
        let others = Self.testFiles.filter { $0.module != "TidyTests" && !Self.waitingFiles.contains($0.path) }
        #expect(try Self.offences(#"\b(Task\.sleep|usleep\(|Thread\.sleep)"#, in: others) { _ in true }.isEmpty)
    }

    /// A spin takes the processor from what it waits for, and has no limit and no name: `eventually` has all three.
    @Test func `tests do not spin`() throws {
        let others = Self.testFiles.filter { $0.module != "TidyTests" && !Self.waitingFiles.contains($0.path) }
        #expect(try Self.offences(#"\bTask\.yield\("#, in: others) { _ in true }.isEmpty)
    }

    /// The wait itself, and those that give way to a reader or to other tests and wait for nothing.
    private static let waitingFiles = [
        "Tests/TestSupport/Eventually.swift", "Tests/RoomTests/MailboxTests.swift", "Tests/SeedSupport/Seeds.swift",
    ]

    @Test func `every test that SECURITY.md names exists`() throws {
        let text = try String(contentsOf: SourceTree.root.appendingPathComponent("SECURITY.md"), encoding: .utf8)
        let rows = text.split(separator: "\n").filter { $0.hasPrefix("| 17.") }
        #expect(rows.count == 11, "the requirements of chapter V17, two of them in one row")
        let python = try SourceTree.text(under: "Tests/Interop", suffix: ".py")
        let swift = Self.testFiles.filter { $0.module != "TidyTests" }.map { $0.lines.joined(separator: "\n") }
        for row in rows {
            let columns = row.split(separator: "|", omittingEmptySubsequences: false)
            let names = (columns.dropFirst(3).first ?? "").matches(of: /`([^`]+)`/).map { String($0.1) }
            #expect(!names.isEmpty || row.contains("Not applicable"), "\(row)")
            for name in names {
                let exists = (python + swift).contains { NamedTest.declares(name, $0) }
                #expect(exists, "no test is called \(name)")
            }
        }
    }

    @Test func `every row of the table of live app semantics names a test that exists`() throws {
        let article = "Sources/Signaling/Signaling/Signaling.docc/LiveAppSemantics.md"
        let text = try String(contentsOf: SourceTree.root.appendingPathComponent(article), encoding: .utf8)
        let rows = NamedTest.rows(of: text)
        #expect(rows.count >= 60, "one row for each behaviour")
        for row in rows {
            #expect(row.columns == 8, "\(row.text)")
            #expect(!row.tests.isEmpty, "\(row.text)")
            for test in row.tests {
                let url = SourceTree.root.appendingPathComponent(test.path)
                let source = (try? String(contentsOf: url, encoding: .utf8)) ?? ""
                #expect(NamedTest.declares(test.name, source), "\(test.path) has no test \(test.name)")
            }
        }
    }

    @Test func `the tests of a row are those behind each path`() {
        let text = """
            | Behaviour | Sora | Test |
            | --- | --- | --- |
            | One | `x` | `Tests/A/B.swift` `it works` `it fails` `Tests/Interop/test_c.py` `test_it` |
            | Two | – | – |
            """
        let rows = NamedTest.rows(of: text)
        #expect(rows.map(\.columns) == [3, 3])
        #expect(rows.map { $0.tests.map(\.name) } == [["it works", "it fails", "test_it"], []])
        #expect(rows[0].tests.map(\.path) == ["Tests/A/B.swift", "Tests/A/B.swift", "Tests/Interop/test_c.py"])
        #expect(NamedTest.declares("it works", "@Test func `it works`() {"))
        #expect(!NamedTest.declares("it", "@Test func `it works`() {"))
        #expect(NamedTest.declares("test_it", "def test_it(node):") && !NamedTest.declares("test_it", "def test_its("))
    }

    @Test func `every member of the browser module that its article names is in its types`() throws {
        let folder = SourceTree.root.appendingPathComponent("Sources/Signaling")
        let article = try String(
            contentsOf: folder.appendingPathComponent("Signaling/Signaling.docc/BrowserModule.md"),
            encoding: .utf8
        )
        let types = try String(contentsOf: folder.appendingPathComponent("Pages/nagare/nagare.d.ts"), encoding: .utf8)
        let members = article.matches(of: /\bchannel\.([a-zA-Z]+)/).map { String($0.1) }
        let sections = article.split(separator: "\n## ")
        let channel = sections.first { $0.hasPrefix("The channel\n") } ?? ""
        let events = channel.split(separator: "| Event |").dropFirst().first ?? ""
        let names = events.split(separator: "\n").filter { $0.hasPrefix("| `") }
            .flatMap { ($0.split(separator: "|").first ?? "").matches(of: /`([a-zA-Z]+)`/).map { String($0.1) } }
        #expect(members.count >= 20 && names.count >= 15)
        for name in Set(members + names) {
            #expect(types.contains(try Regex("\\b\(name)[(?:]")), "nagare.d.ts has no \(name)")
        }
    }

    @Test func `every path, type and method that the code map names exists`() throws {
        let article = try String(contentsOf: SourceTree.root.appendingPathComponent(CodeMap.path), encoding: .utf8)
        let rows = CodeMap.rows(of: article)
        #expect(rows.count >= 15, "\(CodeMap.path) has tables")
        for row in rows {
            #expect(!row.paths.isEmpty, "\(row.text)")
            for path in row.paths {
                let url = SourceTree.root.appendingPathComponent(path)
                #expect(FileManager.default.fileExists(atPath: url.path), "\(path)")
            }
            for symbol in row.symbols {
                #expect(CodeMap.exists(symbol, in: Self.files), "no file in Sources declares \(symbol)")
            }
            // The row's file is where its first type is.
            guard let symbol = row.symbols.first, let path = row.paths.last else { continue }
            #expect(CodeMap.exists(symbol, in: Self.files.filter { $0.path == path }), "\(symbol) is not in \(path)")
        }
    }

    @Test(arguments: [
        ("Peer", true), ("Peer.send", true), ("Peer.receive", true), ("Peer.close", false), ("Queue", false),
        ("Pee", false), ("Track.add", false),
    ])
    func `a symbol of the code map is found where it is declared`(symbol: String, isFound: Bool) {
        let files = [
            SourceFile(
                path: "Sources/A/Peer.swift",
                text: "final class Peer {\n    func send() {}\n}\nlet queue = Queue()"
            ),
            SourceFile(path: "Sources/A/Peer+In.swift", text: "extension Peer {\n    mutating func receive<T>() {}\n}"),
            SourceFile(path: "Sources/A/Track.swift", text: "struct Track {}\n// func add()"),
        ]
        #expect(CodeMap.exists(symbol, in: files) == isFound)
    }

    @Test func `a comment is not taken for code, and a string is`() {
        let file = SourceFile(
            path: "Sources/Protocols/Wire/X.swift",
            text: "// try! one\nlet x = 1  // try! two\nlet y = \"http://a\" // three\n/// print(\nlet z = try! f()\n"
        )
        #expect(file.module == "Wire")
        #expect(file.code.map(\.text) == ["let x = 1  ", "let y = \"http://a\" ", "let z = try! f()"])
        #expect(file.code.map(\.number) == [2, 3, 5])
    }

    /// How many lines of code match in each file, by its path below `Sources`.
    private static func counts(_ pattern: String) throws -> [String: Int] {
        let expression = try Pattern(pattern)
        return files.filter { $0.contains(expression) }.reduce(into: [:]) { counts, file in
            counts[String(file.path.dropFirst("Sources/".count))] = file.code.count { expression.matches($0.text) }
        }
    }

    /// `path:line` of every line of code that matches.
    private static func offences(
        _ pattern: String,
        in files: [SourceFile] = files,
        where isIncluded: (SourceFile) -> Bool
    ) throws -> [String] {
        let expression = try Pattern(pattern)
        return files.filter { isIncluded($0) && $0.contains(expression) }.flatMap { file in
            file.code.filter { expression.matches($0.text) }.map { "\(file.path):\($0.number): \($0.text)" }
        }
    }
}
