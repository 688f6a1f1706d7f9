// swift-tools-version: 6.0
import PackageDescription

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// swift-argument-parser comes from its repository, or, where that cannot be
/// reached, from the folder that SWIFT_ARGUMENT_PARSER_PATH names.
let argumentParser: Package.Dependency =
  if let path = getenv("SWIFT_ARGUMENT_PARSER_PATH") {
    .package(name: "swift-argument-parser", path: String(cString: path))
  } else {
    .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.4.0")
  }

/// Apple's protocols are Sendable in some SDKs and not in others, so the
/// targets that touch Metal stay in Swift 5 language mode.
let metalLanguageMode: [SwiftSetting] = [.swiftLanguageMode(.v5)]

var targets: [Target] = [
  .target(name: "CMetalAttention"),
  .executableTarget(name: "embed-texts"),
  .plugin(name: "EmbedTexts", capability: .buildTool(), dependencies: ["embed-texts"]),
]

#if os(Linux)
  let device: [Target.Dependency] = ["SoftMetal"]
  targets += [
    .target(name: "CSoftMetal", exclude: ["msl", "lanes"], cxxSettings: [.unsafeFlags(["-O3"])]),
    .target(
      name: "SoftMetal", dependencies: ["CSoftMetal"],
      swiftSettings: metalLanguageMode, plugins: ["EmbedTexts"]),
    .testTarget(name: "SoftMetalTests", dependencies: ["SoftMetal"], swiftSettings: metalLanguageMode),
  ]
#else
  let device: [Target.Dependency] = []
#endif

targets += [
  .target(
    name: "MetalAttention", dependencies: ["CMetalAttention"] + device,
    swiftSettings: metalLanguageMode,
    linkerSettings: [
      // A command-line process gets no default device without CoreGraphics.
      .linkedFramework("Metal", .when(platforms: [.macOS])),
      .linkedFramework("CoreGraphics", .when(platforms: [.macOS])),
    ],
    plugins: ["EmbedTexts"]),
  .testTarget(
    name: "MetalAttentionTests", dependencies: ["MetalAttention", "CMetalAttention"],
    swiftSettings: metalLanguageMode),
  .executableTarget(
    name: "metal-attention-tool",
    dependencies: [
      "MetalAttention", "CMetalAttention",
      .product(name: "ArgumentParser", package: "swift-argument-parser"),
    ] + device,
    swiftSettings: metalLanguageMode),
]

// The npm package has no tests, and a test target needs its folder.
if access(Context.packageDirectory + "/Tests", F_OK) != 0 { targets.removeAll(where: \.isTest) }

let package = Package(
  name: "metal-attention",
  platforms: [.macOS(.v14)],
  products: [
    .library(name: "MetalAttention", type: .dynamic, targets: ["MetalAttention"]),
    .executable(name: "metal-attention-tool", targets: ["metal-attention-tool"]),
  ],
  dependencies: [argumentParser],
  targets: targets,
  cxxLanguageStandard: .cxx17
)
