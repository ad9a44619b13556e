# Steps that toolchain/install and toolchain/web share; both source this file.
#
# Debian's packages are fetched with the machine's own apt (under a private configuration:
# own sources, own lists, own package state), unpacked without being installed, and pointed
# at the C library that comes with them. So an old Debian can run new programs, nothing
# outside the folder changes, and root is not needed.
#
# Before: root (of this tree), dest (the folder to make), suite (of Debian), remedy (what a
# person can do instead). From debian_begin on: part (where all is made, to be renamed at the
# end, so that dest is always whole), debs (finished downloads, which stay when this is
# interrupted).
# shellcheck shell=bash disable=SC2154

say() { printf 'toolchain: %s\n' "$*" >&2; }
die() {
    say "error: $1"
    shift
    local line
    for line; do say "  $line"; done
    exit 1
}

# Can this machine do it?
debian_check() {
    [[ $(uname -s) == Linux ]] || die "$(uname -s) is not supported by this script." "$remedy"
    local tool
    for tool in apt-get apt-cache apt-config dpkg dpkg-deb flock; do
        command -v "$tool" >/dev/null ||
            die "this machine has no $tool; the script needs a Debian system." "$remedy"
    done
    codename=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME-}") || true
    local distribution
    distribution=$(. /etc/os-release 2>/dev/null && echo "${ID-}") || true
    [[ $distribution == debian ]] ||
        die "this script needs Debian, and this machine is ${distribution:-of an unknown kind}." "$remedy"
    # A colon separates entries in a library path, so it cannot stand inside one.
    [[ $root != *[:\$]* ]] || die "the path of this tree has a ':' or '\$' in it: $root" "Move the tree."
}

# One installation at a time: several commands may find it missing at once.
debian_lock() {
    exec 9>"$dest.lock"
    flock -n 9 || {
        say "another process is installing ${dest##*/}; waiting for it"
        flock 9
    }
}

# A private apt that uses the mirror, keys and proxies of the machine's own, with its lists read:
# those of packages, or also those of sources where types says so.
debian_begin() {
    part=$dest.part
    debs=$part/debs
    mkdir -p "$part/lists/partial" "$part/cache/archives/partial" "$debs"
    : >"$part/status"
    trap 'say "interrupted; run it again to go on"; exit 130' INT TERM HUP

    local mirrors mirror keyring='' file
    mirrors=$(apt-get indextargets --format '$(RELEASE)|$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk -F'|' -v own="$codename" '
            ($1 == own || $1 ~ /^(stable|oldstable|testing|unstable|sid)$/) && $2 == "main" && !seen[$3]++')
    [[ -n $mirrors ]] || die "apt on this machine is not set up with a Debian mirror." "$remedy"
    IFS='|' read -r _ _ mirror <<<"$mirrors"
    for file in /usr/share/keyrings/debian-archive-keyring.{gpg,pgp}; do
        [[ ! -f $file ]] || keyring=$file
    done

    {
        # Only what says how to fetch is taken over: hooks and package state are not.
        apt-config dump | grep '^Acquire::' | grep -v '^Acquire::\(IndexTargets\|Languages\)' || true
        cat <<CONF
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "$part/mirror.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$part";
Dir::State::lists "$part/lists";
Dir::State::status "$part/status";
Dir::Cache "$part/cache";
APT::Architecture "$(dpkg --print-architecture)";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
CONF
    } >"$part/apt.conf"
    {
        printf 'Types: %s\nURIs: %s\nSuites: %s\nComponents: main\n' \
            "${types:-deb}" "$mirror" "$suite"
        [[ -z $keyring ]] || printf 'Signed-By: %s\n' "$keyring"
    } >"$part/mirror.sources"
    export APT_CONFIG=$part/apt.conf

    say "reading the package list of Debian $suite"
    apt-get -q -o APT::Update::Error-Mode=any update >"$part/update.log" 2>&1 || {
        sed 's/^/    /' "$part/update.log" >&2
        if grep -q NO_PUBKEY "$part/update.log"; then
            die "this machine's keyring does not know the keys of Debian $suite." \
                "Upgrade the package debian-archive-keyring, or:" "$remedy"
        fi
        die "the Debian mirror that apt uses here could not be read (see above); is there a network?" "$remedy"
    }
}

# The packages WANTED and what they need of the kind KEEP, without those of the kind LEAVE (both
# extended regular expressions). Of those that provide a virtual package, the first.
debian_closure() { # WANTED KEEP LEAVE
    local todo=$1 keep=$2 leave=$3 known=' ' next p
    while [[ -n $todo ]]; do
        for p in $todo; do known+="$p "; done
        next=$(apt-cache depends --no-recommends --no-suggests --no-conflicts --no-breaks \
            --no-replaces --no-enhances $todo 2>/dev/null |
            awk -v keep="$keep" '
                virtual { print $1; virtual = 0 }
                $1 ~ /Depends:$/ && $2 ~ keep { print $2 }
                $1 ~ /Depends:$/ && $2 ~ /^</ { virtual = substr($2, 2) ~ keep }' |
            grep -vE -e "$leave" |
            sort -u || true)
        todo=''
        for p in $next; do [[ $known == *" $p "* ]] || todo+="$p "; done
    done
    printf '%s\n' $known
}

# Fetches the packages and unpacks them into $new.
debian_unpack() { # PACKAGES
    local packages=$1 uris files f
    say "fetching $(wc -w <<<"$packages") packages"
    # Asked in an empty folder: apt names no package whose file lies in the current one.
    mkdir -p "$part/plan"
    uris=$(cd "$part/plan" && apt-get -q download --print-uris $packages 2>"$part/plan.log") || {
        sed 's/^/    /' "$part/plan.log" >&2
        die "Debian $suite lacks a package that is needed (see above)." "$remedy"
    }
    files=$(awk '{print $2}' <<<"$uris")
    # The second try is for what an earlier, interrupted run left damaged.
    debian_fetch "$packages" "$uris" || debian_fetch "$packages" "$uris" || {
        grep -E '^(E|W|Err)' "$part/download.log" | sed 's/^/    /' >&2 || true
        die "the download did not finish; run it again to go on."
    }

    say "unpacking"
    new=$part/new
    rm -rf "$new"
    mkdir -p "$new/unpacked"
    for f in $files; do dpkg-deb -x "$debs/$f" "$new/unpacked"; done
    mv "$new/unpacked/usr/"* "$new/"
    rm -rf "$new/unpacked" "$new/share/man"
}

# Khepri is carried by RabbitMQ's package, compiled for the release of OTP in the same suite. Of what
# was unpacked its libraries go to a folder, and the others are thrown away.
debian_khepri() { # FOLDER
    local plugins app
    plugins=$(compgen -G "$new/lib/rabbitmq/lib/rabbitmq_server-*/plugins") ||
        die "the package rabbitmq-server has no folder of libraries any more." "$remedy"
    for app in khepri ra horus aten gen_batch_server seshat; do
        mv "$plugins/$app"-[0-9]* "$1/" ||
            die "the package rabbitmq-server has no $app any more." "$remedy"
    done
    rm -rf "$new/lib/rabbitmq"
}

debian_fetch() { # PACKAGES URIS
    # apt skips a file that is there with the right size, so the sums are looked at here.
    (cd "$debs" && apt-get -q download $1) >"$part/download.log" 2>&1 || return 1
    local _ file hash ok=0
    while read -r _ file _ hash; do
        [[ $hash == SHA256:* ]] || continue
        sha256sum --status -c - <<<"${hash#SHA256:}  $debs/$file" 2>/dev/null && continue
        rm -f "$debs/$file"
        echo "E: $file is damaged" >>"$part/download.log"
        ok=1
    done <<<"$uris"
    return $ok
}

# Makes the programs and libraries found below PLACES (in $new) run from $dest, with patchelf from
# among the packages.
debian_relink() { # PLACE ...
    local loader libs final_loader final_libs file lib missing=''
    loader=$(compgen -G "$new/lib/*-linux-gnu*/ld-linux*.so.*" | head -1) ||
        die "the C library's loader was not found among the unpacked files."
    libs=${loader%/*}
    final_loader=$dest/${loader#"$new"/}
    final_libs=${final_loader%/*}
    while IFS= read -r file; do
        is_elf "$file" || continue
        for lib in $(patchelf_of "$loader" --print-needed "$file"); do
            [[ -e $libs/$lib ]] || missing+=" ${file##*/}:$lib"
        done
        # RPATH and not RUNPATH: it also serves the libraries that are loaded later.
        if patchelf_of "$loader" --print-interpreter "$file" >/dev/null 2>&1; then
            patchelf_of "$loader" --set-interpreter "$final_loader" --force-rpath --set-rpath "$final_libs" "$file"
        fi
    done < <(find "$@" -type f \( -perm -100 -o -name '*.so' \))
    [[ -z $missing ]] || die "libraries that were not fetched:$missing"
}
patchelf_of() { # LOADER ARGUMENT ...
    local loader=$1
    shift
    "$loader" --library-path "${loader%/*}" "$new/bin/patchelf" "$@"
}
is_elf() { [[ -f $1 && ! -L $1 && $(head -c4 "$1" | tr -d '\0') == $'\x7fELF' ]]; }

# Puts what was made in place.
debian_place() {
    rm -rf "$part/old"
    [[ ! -e $dest ]] || mv "$dest" "$part/old"
    mv "$new" "$dest"
}
