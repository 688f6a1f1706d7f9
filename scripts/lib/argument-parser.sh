# shellcheck shell=bash
# swift-argument-parser, where its repository is out of reach.

argument_parser_is_resolved() {
  [[ -n ${SWIFT_ARGUMENT_PARSER_PATH:-} || -d $root/swift/.build/checkouts/swift-argument-parser ]]
}

argument_parser_is_reachable() {
  local url
  url=$(sed -n 's/.*\.package(url: "\([^"]*\)".*/\1/p' "$root/swift/Package.swift")
  command -v git >/dev/null && GIT_TERMINAL_PROMPT=0 timeout 10 git ls-remote "$url" HEAD >/dev/null 2>&1
}

# Debian's source package of Swift holds swift-argument-parser/ in its orig
# archive. apt's own state is left alone: its lists and downloads go to build/apt.
fetch_argument_parser() {
  local apt=$build/apt archive unpacked=$build/apt/unpacked
  rm -rf "$apt"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/sources" "$apt/download" "$unpacked"
  trixie_stanza deb-src >"$apt/sources/trixie.sources"
  local options=(
    -o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$apt/sources"
    -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o "APT::Sandbox::User=root"
  )
  apt-get "${options[@]}" update
  # Only the orig archive matters; a mirror may lack the files beside it.
  (cd "$apt/download" && apt-get "${options[@]}" source --download-only --only-source --tar-only swiftlang)
  archive=$(find "$apt/download" -name 'swiftlang_*.orig.tar.*' -print -quit)
  if [[ -z $archive ]]; then
    echo "apt brought no orig archive of swiftlang"
    return 1
  fi
  tar -xf "$archive" -C "$unpacked" --strip-components=1 --wildcards 'swiftlang-*/swift-argument-parser'
  rm -rf "$build/swift-argument-parser"
  mv "$unpacked/swift-argument-parser" "$build/swift-argument-parser"
  rm -rf "$apt"
}

set_up_argument_parser() {
  if [[ $(uname -s) == Darwin ]] || argument_parser_is_resolved || argument_parser_is_reachable; then return; fi
  say "swift-argument-parser: the command line tool needs it, and its repository cannot be reached from here."
  is_debian_12_or_13 || stop "Put a copy of swift-argument-parser 1.2 or newer into a folder of that name, and run:
    SWIFT_ARGUMENT_PARSER_PATH=/path/to/swift-argument-parser scripts/setup"
  say "    Taking it from the source package of Debian's Swift (a download of 218 MB)."
  progress "swift-argument-parser" argument-parser fetch_argument_parser
  use_local_argument_parser
}
