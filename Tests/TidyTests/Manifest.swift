import Foundation

/// The targets of Package.swift, read as text.
enum Manifest {
    struct Target: Sendable, CustomStringConvertible {
        let name: String
        /// From the repository's top.
        let folder: String
        /// Modules of this package, products and system libraries.
        let dependencies: Set<String>

        var description: String { name }
    }

    /// Modules that a target may import without declaring them: those of the toolchain, and those that come with a product
    /// of Hummingbird's.
    static let undeclaredModules: Set<String> = [
        "Dispatch", "Foundation", "FoundationEssentials", "Glibc", "Synchronization", "Testing",
        "HTTPTypes", "NIOHTTPTypes", "NIOHTTPTypesHTTP1",
    ]

    private static let text: String = {
        let url = SourceTree.root.appendingPathComponent("Package.swift")
        return (try? String(contentsOf: url, encoding: .utf8)) ?? ""
    }()

    /// In the order of the manifest.
    static let targets = targets(in: text)

    /// The modules that the package offers to others.
    static let offeredModules: Set<String> = {
        let lists = text.matches(of: /\.library\(\s*name: "\w+",\s*targets: \[([^\]]*)\]/).map(\.1)
        return Set(lists.flatMap { $0.matches(of: /"(\w+)"/).map { String($0.1) } })
    }()

    /// The module that a line of code imports.
    static func importedModule(_ line: String) -> String? {
        line.firstMatch(of: /^\s*(?:@testable |public |package |internal )*import ([A-Za-z0-9]+)/).map { String($0.1) }
    }

    /// Targets of Swift code, the C targets and system libraries left out.
    private static func targets(in text: String) -> [Target] {
        let code = text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.prefix(upTo: $0.firstRange(of: "// ")?.lowerBound ?? $0.endIndex) }
            .joined(separator: "\n")
        return code.matches(of: /\.?\b(module|tests|executableTarget|target)\(\s*(?:name: )?"([A-Za-z\/]+)"/).compactMap
        {
            match in
            let arguments = parenthesized(code[match.range.lowerBound...])
            let names = arguments.replacing(
                /exclude: \[[^\]]*\]|(package|path): "[^"]*"|\.(copy|embedInCode|process)\("[^"]*"\)|\["[^"]*": "[^"]*"\]/,
                with: ""
            )
            .matches(of: /"([^"]+)"/).map { String($0.1) }
            let name = match.2.split(separator: "/").last.map(String.init) ?? ""
            guard arguments.contains("settings") || match.1 == "module" || match.1 == "tests" else { return nil }
            let path = arguments.firstMatch(of: /path: "([^"]+)"/).map { String($0.1) }
            let folder = path ?? (match.1 == "tests" ? "Tests/" : "Sources/") + match.2
            return Target(name: name, folder: folder, dependencies: Set(names.dropFirst()))
        }
    }

    /// The text between the first parenthesis and its closing one.
    private static func parenthesized(_ text: Substring) -> Substring {
        guard let start = text.firstIndex(of: "(") else { return "" }
        var depth = 0
        for index in text[start...].indices {
            if text[index] == "(" { depth += 1 }
            if text[index] == ")" { depth -= 1 }
            if depth == 0 { return text[start...index] }
        }
        return text[start...]
    }
}
