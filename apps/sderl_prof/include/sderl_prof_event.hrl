%% SPDX-License-Identifier: Apache-2.0
%% The codes of the kinds of events, in the order of ?KINDS.
-define(SPAWN, 1).
-define(SPAWNED, 2).
-define(EXIT, 3).
-define(REGISTER, 4).
-define(UNREGISTER, 5).
-define(LINK, 6).
-define(IN, 7).
-define(OUT, 8).
-define(IN_EXITING, 9).
-define(OUT_EXITING, 10).
-define(OUT_EXITED, 11).
-define(GC_MINOR_START, 12).
-define(GC_MINOR_END, 13).
-define(GC_MAJOR_START, 14).
-define(GC_MAJOR_END, 15).
-define(GC_MAX_HEAP_SIZE, 16).
-define(SEND, 17).
-define(SEND_NOBODY, 18).
-define(RECEIVE, 19).
-define(CALL, 20).
-define(RETURN_TO, 21).
-define(RETURN_FROM, 22).
-define(EXCEPTION, 23).
-define(ACTIVE, 24).
-define(INACTIVE, 25).
-define(SCHEDULER_ACTIVE, 26).
-define(SCHEDULER_INACTIVE, 27).
-define(OPEN, 28).
-define(CLOSED, 29).
-define(PROCESS, 30).
%% Of the library's own functions (sderl_prof_library); all from ?OPERATION on are of a process that
%% runs.
-define(OPERATION, 31).
-define(RESULT, 32).
-define(FAILED, 33).
-define(ROUTED, 34).
-define(PASSED, 35).
-define(DELIVERED, 36).
-define(UNDELIVERED, 37).
-define(KINDS, {spawn, spawned, exit, register, unregister, link, in, out, in_exiting,
                out_exiting, out_exited, gc_minor_start, gc_minor_end, gc_major_start,
                gc_major_end, gc_max_heap_size, send, send_nobody, 'receive', call, return_to,
                return_from, exception, active, inactive, scheduler_active, scheduler_inactive,
                open, closed, process, operation, result, failed, routed, passed, delivered,
                undelivered}).
%% What stands for a word in the place of a process. A process whose serial is greater is none that
%% a node lives to see.
-define(WORD, (1 bsl 58)).
%% Before a word that is text already, not a term.
-define(TEXT, 255).
%% The same before what an operation or a routed message says of itself: there may be many.
-define(DETAIL, 254).
