%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_tls).
-moduledoc """
Checks before anything listens whether a certificate and its key can be used: `ssl` reports errors
as terms, and a key of another certificate only to the first browser.
""".

-export([check/1]).

-include_lib("public_key/include/public_key.hrl").

-define(SIGNED, ~"a text to sign").

-doc "Looks at the files of `ssl`'s options; an error is a sentence with what to do.".
-spec check(#{certfile := file:filename_all(), atom() => term()}) ->
    ok | {error, unicode:chardata()}.
check(#{certfile := CertFile} = Options) ->
    KeyFile = maps:get(keyfile, Options, CertFile),
    maybe
        {ok, Certificates} ?= entries(CertFile),
        {ok, Public} ?= public_key_of(CertFile, Certificates),
        false ?= is_map_key(key, Options) orelse is_map_key(certs_keys, Options),
        {ok, Keys} ?= entries(KeyFile),
        {ok, Private} ?= private_key(KeyFile, Keys, maps:get(password, Options, none)),
        belongs(Private, Public, CertFile, KeyFile)
    else
        true -> ok;
        {error, _} = Error -> Error
    end.

entries(File) ->
    try file:read_file(File) of
        {ok, Text} -> {ok, decoded(Text)};
        {error, Reason} -> sentence("~ts cannot be read: ~ts", [File, file:format_error(Reason)])
    catch
        error:_ -> sentence("~0tP is no name of a file", [File, 12])
    end.

decoded(Text) ->
    try
        public_key:pem_decode(Text)
    catch
        error:_ -> []
    end.

%% The first is the dashboard's own; those of its signers follow.
public_key_of(File, Entries) ->
    try
        [public_key:pkix_decode_cert(Der, otp) || {'Certificate', Der, not_encrypted} <- Entries]
    of
        [#'OTPCertificate'{tbsCertificate = #'OTPTBSCertificate'{subjectPublicKeyInfo = Info}}
         | _] ->
            {ok, public(Info)};
        [] ->
            sentence(
                "~ts has no certificate: it is a file in PEM, with a line "
                "-----BEGIN CERTIFICATE-----",
                [File]
            )
    catch
        error:_ -> sentence("~ts has a certificate that cannot be read: make it again", [File])
    end.

public(#'OTPSubjectPublicKeyInfo'{algorithm = Algorithm, subjectPublicKey = Key}) ->
    case {Key, Algorithm} of
        {#'ECPoint'{}, #'PublicKeyAlgorithm'{parameters = Parameters}} -> {Key, Parameters};
        {_, _} -> Key
    end.

private_key(File, Entries, Password) ->
    case [Entry || {Type, _, _} = Entry <- Entries, is_private(Type)] of
        [{_, _, not_encrypted} = Entry | _] ->
            decoded_key(File, fun() -> public_key:pem_entry_decode(Entry) end);
        [_ | _] when Password =:= none ->
            sentence(
                "the key in ~ts is encrypted: give one that is not, or its password in the setting "
                "tls",
                [File]
            );
        [Entry | _] ->
            Text = case Password of Fun when is_function(Fun, 0) -> Fun(); _ -> Password end,
            decoded_key(File, fun() -> public_key:pem_entry_decode(Entry, Text) end);
        [] ->
            sentence(
                "~ts has no private key: it is a file in PEM, with a line "
                "-----BEGIN PRIVATE KEY-----",
                [File]
            )
    end.

is_private(Type) ->
    Known = ['PrivateKeyInfo', 'EncryptedPrivateKeyInfo', 'RSAPrivateKey', 'ECPrivateKey',
             'DSAPrivateKey'],
    lists:member(Type, Known).

decoded_key(File, Decode) ->
    try
        {ok, Decode()}
    catch
        error:_ ->
            sentence("the key in ~ts cannot be read: the file is damaged, or its password wrong",
                     [File])
    end.

%% The certificate's key verifies a signature of the private key.
belongs(Private, Public, CertFile, KeyFile) ->
    Digest = digest(Private),
    try
        public_key:verify(?SIGNED, Digest, public_key:sign(?SIGNED, Digest, Private), Public)
    of
        true -> ok;
        false -> stranger(CertFile, KeyFile)
    catch
        %% Keys that cannot sign here: only their kinds are compared.
        error:_ ->
            case kind(Private) =:= kind(Public) of
                true -> ok;
                false -> stranger(CertFile, KeyFile)
            end
    end.

kind(#'RSAPrivateKey'{}) -> rsa;
kind({#'RSAPrivateKey'{}, _}) -> rsa;
kind(#'RSAPublicKey'{}) -> rsa;
kind(#'ECPrivateKey'{parameters = Parameters}) -> {ec, Parameters};
kind({#'ECPoint'{}, Parameters}) -> {ec, Parameters};
kind(_) -> other.

digest(#'ECPrivateKey'{parameters = {namedCurve, Curve}}) when
    Curve =:= ?'id-Ed25519'; Curve =:= ?'id-Ed448'
->
    none;
digest(_) ->
    sha256.

stranger(CertFile, KeyFile) ->
    sentence("the key in ~ts is not that of the certificate in ~ts", [KeyFile, CertFile]).

sentence(Format, Args) -> {error, io_lib:format(Format, Args)}.
