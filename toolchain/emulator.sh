# Emulators that Debian has no package of, built from its source package of Erlang/OTP;
# toolchain/install sources this file, after debian.sh.
#
# Only the emulator is built, and it runs with the libraries of .toolchain/: the folder that is
# made has its own erl, and links to the other for all else. So both have to be of one version.
# shellcheck shell=bash disable=SC2154

# What is built: in words, the type that make builds, the arguments of configure, the file that is
# then there, what it says of itself when it runs, and packages whose files are needed for it.
emulator_of() { # KIND
    case $1 in
    lcnt) emulator='an emulator that counts locks' type=lcnt file=beam.lcnt.smp arguments=()
        asked=build_type says=lcnt needs='' ;;
    probes) emulator='an emulator with probes' type=opt file=beam.smp
        arguments=(--with-dynamic-trace=systemtap)
        asked=dynamic_trace says=systemtap needs='systemtap-sdt-dev' ;;
    *) return 1 ;;
    esac
    dest=$root/.toolchain-$1
}

# Builds it, unless it is there.
emulator_install() { # KIND FORCE
    local kind=$1 force=$2 otp home
    emulator_of "$kind"
    remedy="Everything but this works without it."
    # Its libraries are those that were fetched, also where the machine has others.
    SDERL_OWN_OTP=1 "$root/toolchain/install"
    home=$root/.toolchain/lib/erlang
    otp=$(cat "$home"/releases/[0-9]*/OTP_VERSION)
    stamp="recipe=$emulator_recipe otp=$otp at=$dest"
    [[ -z $force ]] && installed && return
    emulator_check
    debian_check
    debian_lock
    [[ -z $force ]] && installed && return
    types='deb deb-src' debian_begin

    emulator_source "$otp"
    emulator_needs
    emulator_make
    emulator_home "$home"
    debian_place
    emulator_try
    printf '%s\n' "$stamp" >"$dest/stamp"
    rm -rf "$part"
    say "built $emulator of OTP $otp in ${dest##*/}: ${dest##*/}/bin/erl"
}

emulator_check() {
    local tool missing=''
    for tool in cc c++ make perl patch tar xz; do
        command -v "$tool" >/dev/null || missing+=" $tool"
    done
    [[ -z $missing ]] || die "building $emulator needs programs that this machine lacks:$missing." \
        "Install them (Debian: build-essential, perl, patch, xz-utils) and try again." "$remedy"
    echo 'int main() { return 0; }' | c++ -std=c++17 -x c++ -o /dev/null - 2>/dev/null ||
        die "building $emulator needs a C++ compiler with its headers, and c++ here compiles nothing." \
            "Install one (Debian: build-essential) and try again." "$remedy"
}

# Unpacks the source of this version into $part/source, with Debian's patches.
emulator_source() { # VERSION
    local want=$1 versions version found archive upstream
    source=$part/source
    [[ -f $source/.unpacked && $(<"$source/.unpacked") == "$want" ]] && return
    versions=$(apt-cache showsrc erlang 2>/dev/null | sed -n 's/^Version: //p' | sort -Vu || true)
    found=''
    for version in $versions; do
        # Without the epoch, Debian's own number and its mark of what it left out.
        archive=${version#*:}
        archive=${archive%-*}
        [[ ${archive%%+*} != "$want" ]] || found=$version
    done
    [[ -n $found ]] || die \
        "Debian $suite has the source of OTP ${versions:-no version}, and .toolchain is OTP $want." \
        "\"toolchain/install --force\" brings .toolchain to the one that Debian has now." "$remedy"
    say "fetching the source of OTP $want"
    (cd "$debs" && apt-get -q source --download-only --only-source "erlang=$found") \
        >"$part/source.log" 2>&1 || {
        grep -E '^(E|W|Err)' "$part/source.log" | sed 's/^/    /' >&2 || true
        die "the source did not come; run it again to go on." "$remedy"
    }
    say "unpacking"
    rm -rf "$source"
    mkdir -p "$source"
    # An interrupted run may have left those of another version.
    upstream=${found#*:}
    tar -xf "$(compgen -G "$debs/erlang_${upstream%-*}.orig.tar.*z*" | grep -v '\.asc$' | head -1)" \
        -C "$source" --strip-components=1
    tar -xf "$(compgen -G "$debs/erlang_$upstream.debian.tar.*" | head -1)" -C "$source"
    local patch
    while read -r patch _; do
        [[ -n $patch && $patch != \#* ]] || continue
        patch -d "$source" -p1 -s -f <"$source/debian/patches/$patch" >>"$part/source.log" 2>&1 ||
            die "a patch of Debian's does not apply: $patch; see ${part##*/}/source.log." "$remedy"
    done <"$source/debian/patches/series"
    printf '%s\n' "$want" >"$source/.unpacked"
}

# Headers and programs that the machine may lack, into $part/needs.
emulator_needs() {
    [[ -n $needs ]] || return 0
    debian_unpack "$needs"
    rm -rf "$part/needs"
    mv "$new" "$part/needs"
    # A script that asks for the system's own Python; any other does.
    local python script=$part/needs/bin/dtrace
    python=$(command -v python3) ||
        die "building $emulator needs python3, which this machine lacks." \
            "Install it (Debian: python3) and try again." "$remedy"
    sed -i "1s|.*|#!$python|" "$script"
}

# An interrupted build goes on where it was.
emulator_make() {
    local log=$part/build.log
    : "${MAKEFLAGS:=-j$(nproc)}"
    say "building $emulator (the log is ${part##*/}/build.log)"
    (
        cd "$source" || exit 1
        export ERL_TOP=$source MAKEFLAGS
        unset APT_CONFIG
        PATH=$root/.toolchain/bin:$PATH
        [[ -z $needs ]] || {
            PATH=$part/needs/bin:$PATH
            headers=-I$(compgen -G "$part/needs/include/*-linux-gnu*" | head -1)
            export CPPFLAGS=$headers CFLAGS="-O2 -g $headers" CXXFLAGS="-O2 -g $headers"
        }
        [[ -f .configured ]] || {
            ./configure --without-javac --without-wx --without-odbc --without-ssl \
                --without-termcap "${arguments[@]}" && touch .configured || exit 1
        }
        make -C erts/emulator "$type"
    ) >"$log" 2>&1 || {
        tail -5 "$log" | sed 's/^/    /' >&2
        die "$emulator was not built (see above, and ${part##*/}/build.log)." "$remedy"
    }
    built=$(compgen -G "$source/bin/*/$file" | head -1) ||
        die "the build made no $file (see ${part##*/}/build.log)." "$remedy"
}

# The folder of an OTP: its own erl and emulator, and links to the rest of the other.
emulator_home() { # HOME
    local home=$1 erts entry there
    new=$part/new
    rm -rf "$new"
    erts=$(cd "$home" && compgen -G 'erts-*' | head -1)
    there=../.toolchain/lib/erlang
    mkdir -p "$new/bin" "$new/lib/erlang/bin" "$new/lib/erlang/$erts/bin"
    for entry in "$home"/*; do
        entry=${entry##*/}
        [[ $entry == bin || $entry == "$erts" ]] || ln -s "../../$there/$entry" "$new/lib/erlang/$entry"
    done
    for entry in "$home"/bin/*; do
        entry=${entry##*/}
        [[ $entry == erl ]] || ln -s "../../../$there/bin/$entry" "$new/lib/erlang/bin/$entry"
    done
    for entry in "$home/$erts"/*; do
        entry=${entry##*/}
        [[ $entry == bin ]] || ln -s "../../../$there/$erts/$entry" "$new/lib/erlang/$erts/$entry"
    done
    for entry in "$home/$erts"/bin/*; do
        entry=${entry##*/}
        [[ $entry == erl || $entry == "$file" ]] ||
            ln -s "../../../../$there/$erts/bin/$entry" "$new/lib/erlang/$erts/bin/$entry"
    done
    cp "$built" "$new/lib/erlang/$erts/bin/$file"
    strip --strip-debug "$new/lib/erlang/$erts/bin/$file" 2>/dev/null || true
    emulator_relink "$new/lib/erlang/$erts/bin/$file"
    # The last -emu_type counts, so that one can choose the other, too.
    sed -e "s|^\( *ROOTDIR=\).*|\1\"$(sed 's/[&|\\]/\\&/g' <<<"$dest/lib/erlang")\"|" \
        -e "s|/erlexec\"|& -emu_type $type|" "$home/bin/erl" >"$new/lib/erlang/bin/erl"
    chmod +x "$new/lib/erlang/bin/erl"
    ln -s "../../bin/erl" "$new/lib/erlang/$erts/bin/erl"
    ln -s ../lib/erlang/bin/erl "$new/bin/erl"
    for entry in erlc escript epmd; do ln -s "../../.toolchain/bin/$entry" "$new/bin/$entry"; done
}

# With the C library of .toolchain/, because its libraries are built for that one.
emulator_relink() { # FILE
    local loader libs
    loader=$(compgen -G "$root/.toolchain/lib/*-linux-gnu*/ld-linux*.so.*" | head -1) ||
        die "the C library's loader was not found in .toolchain."
    libs=${loader%/*}
    "$loader" --library-path "$libs" "$root/.toolchain/bin/patchelf" \
        --set-interpreter "$loader" --force-rpath --set-rpath "$libs" "$1"
}

emulator_try() {
    local told
    told=$("$dest/bin/erl" -noinput -eval \
        "crypto:hash(md5, []), io:format(\"~s\", [erlang:system_info($asked)]), halt()." \
        2>&1 </dev/null) || emulator_bad "the emulator that was built does not start:" "$told"
    [[ $told == "$says" ]] ||
        emulator_bad "the emulator that was built is none with $asked $says:" "$told"
}

# One that does not work is no use to anybody who finds it.
emulator_bad() {
    rm -rf "$dest"
    die "$@"
}
