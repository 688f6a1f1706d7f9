# shellcheck shell=bash
# Bun, and the npm packages.

bun_minimum=1.4.0
bun_install_version=1.4.4

have_bun() {
  command -v bun >/dev/null && version_at_least "$(bun --version 2>/dev/null)" "$bun_minimum"
}

# Installs the npm package `bun` under build/, so that nothing global changes.
# npm may be set up to run no install scripts, and without its own script the
# package holds only a placeholder; so that script is run here.
install_bun() {
  npm install --prefix "$build/bun" --no-save --no-audit --no-fund --ignore-scripts "bun@$bun_install_version"
  (cd "$build/bun/node_modules/bun" && node install.js)
  mkdir -p "$build/bin"
  # The same program under both names.
  ln -sfn ../bun/node_modules/bun/bin/bun.exe "$build/bin/bun"
  ln -sfn ../bun/node_modules/bun/bin/bun.exe "$build/bin/bunx"
}

set_up_bun() {
  if ! have_bun; then
    say "Bun: $bun_minimum or newer runs the TypeScript side and its tests; installing $bun_install_version from npm into build/bun."
    if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
      stop "Neither Bun $bun_minimum nor npm is on the PATH. Install one of them (https://bun.sh or https://nodejs.org), then run scripts/setup again."
    fi
    mkdir -p "$build/bun"
    progress "Bun" bun install_bun
    hash -r
    have_bun || stop "The installed $build/bin/bun does not run: $("$build/bin/bun" --version 2>&1 | head -n 3)"
    say "    For commands of your own: export PATH=\"$build/bin:\$PATH\""
  fi
}

# Bun compares node_modules with the lock file itself; this takes milliseconds when nothing changed.
set_up_npm_packages() {
  # Installed as a package, this has no lock file, and its packages are there.
  if [[ ! -f $root/bun.lock ]]; then return; fi
  if [[ ! -d $root/node_modules ]]; then
    say "npm packages: zod at run time; the compiler, linter and test tools for development. Versions are those of bun.lock."
  fi
  progress "npm packages" npm-packages bun install --frozen-lockfile --cwd "$root"
}
