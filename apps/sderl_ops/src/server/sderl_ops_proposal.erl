%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_proposal).
-moduledoc """
Plans a file that somebody has sent as a text.

The sender may look, but is not the user of the service. So nothing on the machine is used that the
newest revision does not name already: no other folder is packed, no other program is run, and no
secret or template is read. A new release is known by the checksum that the file gives for its
archive.
""".

-export([read/2, prepare/3]).

-doc """
The file. Relative paths begin in the folder of `Applied`, the file that was applied last; if that
is not known, they are refused. Errors are for a person.
""".
-spec read(Text :: binary(), Applied :: none | binary()) ->
    {ok, sderl_ops_file:file()} | {error, [unicode:chardata(), ...]}.
read(Text, Applied) ->
    Base = case Applied of none -> unknown; _ -> filename:dirname(Applied) end,
    case sderl_ops_file:read_text(Text, Base) of
        {ok, File} -> {ok, File};
        {error, Problems} ->
            {error, [sderl_ops_file:format_error(Problem) || Problem <- Problems]}
    end.

-doc "Like `sderl_ops_revision:prepare/2`, with nothing that the newest file does not name.".
-spec prepare(sderl_ops_file:file(), Known :: none | sderl_ops_file:file(),
              Folder :: file:filename_all()) ->
    {ok, sderl_ops_revision:prepared()} | {error, [unicode:chardata(), ...]}.
prepare(File, Known, Folder) ->
    case new_programs(File, Known) of
        [] -> sderl_ops_revision:prepare(File, Folder, fun(Release) ->
            pack(Release, Known, Folder)
        end);
        Problems -> {error, Problems}
    end.

new_programs(#{providers := Providers}, Known) ->
    [["providers.", Name, ": its program is not that of the newest revision, and is not run here; ",
      elsewhere()]
     || Name := #{type := exec} = Provider <- maps:iterator(Providers, ordered),
        Provider =/= maps:get(Name, of_known(providers, Known), none)].

of_known(_, none) -> #{};
of_known(Part, Known) -> map_get(Part, Known).

elsewhere() -> "see it where the service runs, with `bin/sderl ops plan FILE`".

pack(#{running := _} = Release, _, Folder) -> sderl_ops_revision:pack(Release, Folder);
pack(Release, Known, Folder) ->
    Known1 = [source(Is) || _ := Is <- of_known(releases, Known)],
    case {lists:member(source(Release), Known1), Release} of
        {true, _} -> sderl_ops_revision:pack(Release, Folder);
        {false, #{archive := _, sha256 := Sum}} -> {ok, string:lowercase(Sum), none};
        {false, _} ->
            {error, ["its files are not those of a release of the newest revision, and are not "
                     "read here; give an archive with its sha256, or ", elsewhere()]}
    end.

source(Release) -> maps:with([archive, sha256, folder, code], Release).
