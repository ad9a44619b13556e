%% SPDX-License-Identifier: Apache-2.0
-module(sderl_row).
-moduledoc false.
%% A registered name as the protocol sees it: one field of it at a time.

-include("sderl_row.hrl").

-export([name/1, pid/1, home/1, version/1]).
-export([with_home/2, with_version/2]).
-export_type([t/0, version/0]).

-doc "A registered name: its process, the member whose name it is, its version and its options.".
-type t() :: ?ROW(Name :: term(), pid(), Home :: node(), version(), Options :: [] | map()).

-doc "The epoch, and the batch with the place in it; `new` where the batch gives it.".
-type version() :: {term(), non_neg_integer()} | new.

-spec name(t()) -> term().
name(?ROW(Name, _, _, _, _)) -> Name.

-spec pid(t()) -> pid().
pid(?ROW(_, Pid, _, _, _)) -> Pid.

-spec home(t()) -> node().
home(?ROW(_, _, Home, _, _)) -> Home.

-spec version(t()) -> version().
version(?ROW(_, _, _, Version, _)) -> Version.

-spec with_home(node(), t()) -> t().
with_home(Home, ?ROW(Name, Pid, _, Version, Options)) -> ?ROW(Name, Pid, Home, Version, Options).

-spec with_version(version(), t()) -> t().
with_version(Version, ?ROW(Name, Pid, Home, _, Options)) -> ?ROW(Name, Pid, Home, Version, Options).
