#!/bin/sh
# Installs Parley @VERSION@, with a Node of its own, or removes it:
#
#   sh install.sh [--prefix DIR] [--uninstall]
#
# It downloads the archive for this system, compares its SHA-256 checksum with the one below, unpacks it to
# DIR/lib/parley-gateway, and links DIR/bin/parley and DIR/bin/parley-gateway. DIR is ~/.local by default.
# It changes nothing else, and needs no root.
set -eu

version=@VERSION@
downloads=${PARLEY_DOWNLOADS:-@DOWNLOADS@/v$version}

checksum_of() {
  case $1 in
    @CHECKSUMS@
    *) return 1 ;;
  esac
}

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

system() {
  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=macos ;;
    *) os=$(uname -s) ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) cpu=x64 ;;
    aarch64 | arm64) cpu=arm64 ;;
    *) cpu=$(uname -m) ;;
  esac
  # Node's own builds do not start on a musl system such as Alpine.
  if [ -e /lib/ld-musl-x86_64.so.1 ] || [ -e /lib/ld-musl-aarch64.so.1 ]; then
    [ -e /lib64/ld-linux-x86-64.so.2 ] || [ -e /lib/ld-linux-aarch64.so.1 ] || os=$os-musl
  fi
  echo "$os-$cpu"
}

download() {
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --output "$2" "$1"
  elif command -v wget >/dev/null; then
    wget -q -O "$2" "$1"
  else
    fail "neither curl nor wget is installed"
  fi
}

checksum() {
  if command -v sha256sum >/dev/null; then
    sha256sum "$1" | cut -d ' ' -f 1
  else
    shasum -a 256 "$1" | cut -d ' ' -f 1
  fi
}

# Whether the path is a link that this script made.
is_ours() {
  [ -h "$1" ] && [ "$(readlink "$1")" = ../lib/parley-gateway/parley ]
}

# Refuses a folder that this script did not make: it would be deleted.
check_home() {
  [ ! -e "$home" ] || [ -x "$home/parley" ] || fail "$home is not Parley's. Remove it, or choose another --prefix"
}

uninstall() {
  [ -d "$home" ] || fail "Parley is not installed in $prefix"
  check_home
  for name in parley parley-gateway; do
    if is_ours "$prefix/bin/$name"; then rm "$prefix/bin/$name"; fi
  done
  rm -rf "$home"
  echo "Removed $home and its commands in $prefix/bin."
  echo "The configuration and the store in ~/.parley are kept."
}

install() {
  check_home
  for name in parley parley-gateway; do
    if [ -e "$prefix/bin/$name" ] && ! is_ours "$prefix/bin/$name"; then
      fail "$prefix/bin/$name is another program. Remove it, or choose another --prefix"
    fi
  done
  system=$(system)
  expected=$(checksum_of "$system") ||
    fail "there is no archive for $system. With Node 20 or newer: npm install --global parley-gateway"
  mkdir -p "$prefix/bin" "$prefix/lib"
  # In the same file system, so that the finished folder is moved into place at once.
  work=$(mktemp -d "$prefix/lib/.parley-gateway.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  name=parley-gateway-$version-$system
  echo "Downloading $downloads/$name.tar.gz"
  download "$downloads/$name.tar.gz" "$work/archive" || fail "the download failed; nothing is installed"
  actual=$(checksum "$work/archive")
  if [ "$actual" != "$expected" ]; then
    fail "the checksum is $actual, but should be $expected; nothing is installed"
  fi
  tar -xzf "$work/archive" -C "$work"
  "$work/$name/parley" --version >/dev/null || fail "the program does not start here; nothing is installed"
  rm -rf "$home"
  mv "$work/$name" "$home"
  for name in parley parley-gateway; do
    ln -sf ../lib/parley-gateway/parley "$prefix/bin/$name"
  done
  echo "Installed Parley $version in $home, and the commands parley and parley-gateway in $prefix/bin."
  case :$PATH: in
    *:"$prefix/bin":*) echo "Start it: parley" ;;
    *) echo "Start it: $prefix/bin/parley (add $prefix/bin to your PATH)" ;;
  esac
  echo "A running gateway uses the new version after a restart. To remove it: sh install.sh --uninstall"
}

prefix=$HOME/.local
action=install
while [ $# -gt 0 ]; do
  case $1 in
    --prefix)
      [ $# -gt 1 ] || fail "--prefix needs a folder"
      prefix=$2
      shift
      ;;
    --uninstall) action=uninstall ;;
    *) fail "unknown argument $1. Use: sh install.sh [--prefix DIR] [--uninstall]" ;;
  esac
  shift
done
case $prefix in
  /*) ;;
  *) prefix=$PWD/$prefix ;;
esac
home=$prefix/lib/parley-gateway
$action
