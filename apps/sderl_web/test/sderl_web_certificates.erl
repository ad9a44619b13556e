%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_certificates).
-moduledoc "A new authority and a certificate for this machine that it signed.".

-export([make/1, pem/2]).

%% The options of the server with its files in a folder, and those of a client that checks them.
make(Dir) ->
    Made = [{digest, sha256}, {key, {namedCurve, secp256r1}}],
    Chain = #{root => Made, intermediates => [], peer => Made},
    #{server_config := Server, client_config := Client} =
        public_key:pkix_test_data(#{server_chain => Chain, client_chain => Chain}),
    {Type, Key} = proplists:get_value(key, Server),
    Files = #{
        certfile => pem(new_file(Dir), [{'Certificate', proplists:get_value(cert, Server)}]),
        keyfile => pem(new_file(Dir), [{Type, Key}])
    },
    Trust = [
        {verify, verify_peer},
        {cacerts, proplists:get_value(cacerts, Client)},
        %% The name that the certificate is for.
        {server_name_indication, net_adm:localhost()},
        {alpn_advertised_protocols, [~"http/1.1"]}
    ],
    {Files, Trust}.

pem(File, Entries) ->
    Pem = public_key:pem_encode([{Type, Der, not_encrypted} || {Type, Der} <- Entries]),
    ok = file:write_file(File, Pem),
    File.

new_file(Dir) ->
    filename:join(Dir, lists:concat(["tls", erlang:unique_integer([positive]), ".pem"])).
