# shellcheck shell=bash
# The Swift and clang packages of Debian 13 (trixie), on Debian 12 and 13.

trixie_sources=/etc/apt/sources.list.d/metal-attention-trixie.sources
trixie_pin=/etc/apt/preferences.d/metal-attention-trixie

is_debian_12_or_13() {
  grep -qx 'ID=debian' /etc/os-release 2>/dev/null && grep -Eqx 'VERSION_ID="?1[23]"?' /etc/os-release
}

# Every entry of this machine's apt sources but our own, as deb822 stanzas.
apt_stanzas() {
  local file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [[ -f $file ]] || continue
    awk '$1 == "deb" {
      sub(/#.*/, "")
      options = ""
      if (match($0, /\[[^]]*\]/)) {
        options = substr($0, RSTART + 1, RLENGTH - 2)
        $0 = substr($0, 1, RSTART - 1) substr($0, RSTART + RLENGTH)
      }
      printf "Types: deb\nURIs: %s\nSuites: %s\nComponents:", $2, $3
      for (i = 4; i <= NF; i++) printf " %s", $i
      printf "\n"
      count = split(options, option, " ")
      for (i = 1; i <= count; i++) {
        at = index(option[i], "=")
        name = substr(option[i], 1, at - 1)
        value = substr(option[i], at + 1)
        if (name == "arch") { name = "Architectures"; gsub(",", " ", value) }
        printf "%s: %s\n", name, value
      }
      printf "\n"
    }' "$file"
  done
  for file in /etc/apt/sources.list.d/*.sources; do
    [[ -f $file && $file != "$trixie_sources" ]] || continue
    sed '/^#/d' "$file"
    echo
  done
}

# trixie_stanza TYPES: the entry of the machine's main suite (so its mirror and
# its keys), with the suite replaced by trixie. Empty when there is none.
trixie_stanza() {
  apt_stanzas | awk -v types="$1" '
    BEGIN { RS = ""; FS = "\n" }
    !found {
      suite = main = disabled = 0
      kept = ""
      for (i = 1; i <= NF; i++) {
        value = $i
        if ($i !~ /^[ \t]/) {
          name = tolower($i)
          sub(/:.*/, "", name)
          sub(/^[^:]*:/, "", value)
        }
        value = " " value " "
        gsub(/[ \t]+/, " ", value)
        if (name == "suites" && value ~ / (bookworm|trixie|stable|oldstable) /) suite = 1
        if (name == "components" && value ~ / main /) main = 1
        if (name == "enabled" && value ~ / no /) disabled = 1
        if (name !~ /^(types|suites|components|enabled)$/) kept = kept $i "\n"
      }
      if (suite && main && !disabled) {
        printf "Types: %s\nSuites: trixie\nComponents: main\n%s", types, kept
        found = 1
      }
    }'
}

# On Debian 13 the machine's own sources have the packages, and a pin would hold the whole system back.
has_own_trixie() { apt_stanzas | grep -Eq '^Suites:(.*[[:space:]])?trixie([[:space:]]|$)'; }

swift_packages() {
  printf 'swiftlang clang-19 llvm-19-dev libstdc++-14-dev'
  if ! command -v xz >/dev/null; then printf ' xz-utils'; fi
}

# The commands, as text: set-up runs them as root and shows them to anybody else.
debian_source_commands() {
  if ! has_own_trixie; then
    local stanza
    stanza=$(trixie_stanza deb)
    [[ -n $stanza ]] || stop "No entry for the main suite in /etc/apt/sources.list or /etc/apt/sources.list.d. Add one (component main), then run scripts/setup again."
    printf "cat > %s <<'END'\n%s\nEND\n" "$trixie_sources" "$stanza"
    printf "printf 'Package: *\\\\nPin: release n=trixie\\\\nPin-Priority: 100\\\\n' > %s\n" "$trixie_pin"
  fi
  echo "apt-get update"
}

debian_install_command() {
  # Configuration files that the user changed stay as they are.
  printf 'DEBIAN_FRONTEND=noninteractive apt-get install -y -t trixie --no-install-recommends'
  printf ' -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold'
  printf ' %s\n' "$(swift_packages)"
}

run_commands() { bash -euo pipefail -c "$1"; }

install_swift_on_debian() {
  local sources install plan
  sources=$(debian_source_commands)
  install=$(debian_install_command)
  if ((EUID != 0)); then
    stop "Installing Swift and clang needs root. Run these as root, then scripts/setup again (libc6 and about 38 packages bound to its version are upgraded with them):

$sources
$install"
  fi
  say "Swift and clang: the library is Swift, and clang compiles the shaders. Debian 13 (trixie) has both:"
  say "    packages: $(swift_packages)"
  if ! has_own_trixie; then
    say "    Its suite is added in $trixie_sources, pinned at priority 100 in $trixie_pin, so that nothing else moves to it."
    say "    libc6 and the packages bound to its version (about 38 on a usual system) are upgraded with it."
  fi
  progress "apt-get update" apt-update run_commands "$sources"
  plan=$(run_commands "${install/apt-get install/apt-get install -s}")
  say "    apt upgrades $(grep -Ec '^Inst [^ ]+ \[' <<<"$plan") packages (libc6 among them where it is older), adds $(grep -Ec '^Inst [^ ]+ \(' <<<"$plan") and removes $(grep -c '^Remv ' <<<"$plan" || true) that those replace."
  progress "apt-get install" apt-install run_commands "$install"
  hash -r
}
