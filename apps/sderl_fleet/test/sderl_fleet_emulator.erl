%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_emulator).
-moduledoc "The emulators that `toolchain/install` builds on demand, for the tests that need one.".

-export([built/1]).

-doc """
The program of one (`"lcnt"`, `"probes"`) that was built for the OTP of these tests; `none` where
it was not, or for another one.
""".
-spec built(Kind :: string()) -> file:filename() | none.
built(Kind) -> built(filename:join(".toolchain-" ++ Kind, "stamp"), filename:absname("")).

built(Name, Dir) ->
    Stamp = filename:join(Dir, Name),
    case {file:read_file(Stamp), filename:dirname(Dir)} of
        {{ok, Text}, _} ->
            case string:find(Text, ["otp=", otp(), " "]) of
                nomatch -> none;
                _ -> filename:join([filename:dirname(Stamp), "bin", "erl"])
            end;
        {{error, _}, Dir} -> none;
        {{error, _}, Up} -> built(Name, Up)
    end.

otp() ->
    Release = erlang:system_info(otp_release),
    {ok, Version} = file:read_file(filename:join([code:root_dir(), "releases", Release,
                                                  "OTP_VERSION"])),
    string:trim(Version).
