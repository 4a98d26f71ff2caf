#!/usr/bin/env bash
# Makes the Kubernetes that the tests of `tuner serve --engine kubernetes` run on: API server and
# scheduler, built from Debian's source package with Debian's Go, and beside them Debian's etcd and
# kubectl. They are kept in a folder outside of the checkout, ~/.cache/espalier/kubernetes-VERSION,
# which is printed. The first call takes some six minutes of two processors and 3 GB there, which are
# given back; a second one does nothing. Installs nothing, and needs no root.
# usage: scripts/setup-kubernetes.sh [--where]      --where: prints the folder, if it is there, and makes nothing
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

VERSION=1.20.2 # of Debian 12, which has no other
PACKAGES=(golang-1.19-go golang-1.19-src golang-github-modern-go-reflect2-dev etcd-server kubernetes-client)
PROGRAMS=(kube-apiserver kube-scheduler)
BUILD_NEEDS_MB=3300
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/espalier
DIR=$CACHE/kubernetes-$VERSION
WORK=$DIR.building

# apt-get, with the machine's own sources of this release and with their source packages, which are
# often left out. It reads and writes lists of its own, so that those of the machine stay as they are.
apt_get() {
  apt-get -q -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$WORK/apt/sources" \
    -o "Dir::State::lists=$WORK/apt/lists" -o "Dir::Cache=$WORK/apt/cache" -o APT::Sandbox::User=root "$@"
}

name_sources() {
  local release
  release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  mkdir -p "$WORK"/apt/{sources,lists/partial,cache/archives/partial}
  # Sources have two forms. Those of others than Debian have no suite of the release's name.
  cat /etc/apt/sources.list.d/*.sources 2>/dev/null |
    awk -v RS= -v ORS='\n\n' -v release="$release" '
      $0 ~ "(^|\n)Suites:[^\n]* " release "(-|\n| |$)" { sub(/(^|\n)Types:[^\n]*/, "\nTypes: deb deb-src"); print }' \
      >"$WORK/apt/sources/machine.sources"
  cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
    awk -v release="$release" '
      $1 == "deb" && $0 ~ " " release "(-[a-z-]+)? " { print; sub(/^deb/, "deb-src"); print }' \
      >"$WORK/apt/sources/machine.list" || true
}

download() {
  name_sources
  apt_get update && (cd "$WORK" && apt_get download "${PACKAGES[@]}" && apt_get source --download-only kubernetes)
}

unpack() {
  local package
  for package in "${PACKAGES[@]}"; do dpkg-deb -x "$WORK/$package"_*.deb "$WORK/debian" || return 1; done
  mkdir -p "$(dirname "$TREE")"
  dpkg-source --no-check -x "$WORK"/kubernetes_*.dsc "$TREE"
  # The version in the source package ends with "fatal error: fault" under this Go.
  rm -rf "$TREE/vendor/github.com/modern-go/reflect2"
  cp -r "$WORK/debian/usr/share/gocode/src/github.com/modern-go/reflect2" "$TREE/vendor/github.com/modern-go/"
}

# The descriptions of all types, which the source package lacks.
generate_openapi() {
  local inputs
  go build -o "$WORK/openapi-gen" k8s.io/kubernetes/vendor/k8s.io/kube-openapi/cmd/openapi-gen || return 1
  inputs=$(cd "$TREE" && grep -rl --include=*.go '^// +k8s:openapi-gen=true' pkg/apis staging/src/k8s.io |
    grep -v -E '/(code-generator|sample-apiserver)/' | xargs -n1 dirname | sort -u |
    sed 's,^staging/src,vendor,; s,^,k8s.io/kubernetes/,' | paste -s -d ,)
  (cd "$TREE" && "$WORK/openapi-gen" --go-header-file vendor/k8s.io/code-generator/hack/boilerplate.go.txt \
    --input-dirs "$inputs" --output-base "$GOPATH/src" --output-package k8s.io/kubernetes/pkg/generated/openapi \
    --output-file-base zz_generated.openapi --report-filename "$WORK/violations")
}

build() {
  local program
  for program in "${PROGRAMS[@]}"; do
    heading "kubernetes: $program" >&2
    go build -ldflags "-s -w -X k8s.io/kubernetes/vendor/k8s.io/component-base/version.gitVersion=v$VERSION" \
      -o "$WORK/bin/$program" "k8s.io/kubernetes/cmd/$program" || return 1
  done
  cp "$WORK/debian/usr/bin/etcd" "$WORK/debian/usr/bin/kubectl" "$WORK/bin/"
}

# attempt WHAT COMMAND...: or the end, with its last words.
attempt() {
  local what=$1
  shift
  heading "kubernetes: $what" >&2
  "$@" >>"$WORK/log" 2>&1 || {
    tail -n 20 "$WORK/log" >&2
    stop_with "Kubernetes $VERSION could not be made: $what failed, see above and $WORK/log"
  }
}

case "${1:-}" in
  "") ;;
  --where)
    [[ -d $DIR ]] || stop_with "there is no $DIR" "scripts/setup-kubernetes.sh makes it."
    printf '%s\n' "$DIR"
    exit 0
    ;;
  *) printf 'usage: scripts/setup-kubernetes.sh [--where]\n' >&2; exit 2 ;;
esac

mkdir -p "$CACHE"
exec 9>"$DIR.lock"
flock 9
if [[ ! -d $DIR ]]; then
  for tool in apt-get dpkg-source; do
    command -v "$tool" >/dev/null || stop_with "Kubernetes is built from Debian's packages, and there is no $tool here"
  done
  chmod -R u+w "$WORK" 2>/dev/null || true
  rm -rf "$WORK"
  need_space "Kubernetes $VERSION, while it is made," "$CACHE" $BUILD_NEEDS_MB \
    "XDG_CACHE_HOME=DIR makes it in DIR/espalier; tests of the Kubernetes engine run without it, on their small API server."
  mkdir -p "$WORK/bin"
  export GOROOT=$WORK/debian/usr/lib/go-1.19 GOPATH=$WORK/go GOCACHE=$WORK/go-cache GO111MODULE=off CGO_ENABLED=0
  export PATH=$GOROOT/bin:$PATH GOFLAGS=-p=$(build_jobs)
  TREE=$GOPATH/src/k8s.io/kubernetes
  attempt "download of Debian's packages" download
  attempt "unpacking" unpack
  attempt "descriptions of types" generate_openapi
  attempt "build" build
  mkdir -p "$DIR.new"
  mv "$WORK/bin" "$DIR.new/"
  mv "$DIR.new" "$DIR"
  chmod -R u+w "$WORK"
  rm -rf "$WORK"
fi
printf '%s\n' "$DIR"
